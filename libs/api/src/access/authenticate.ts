import { timingSafeEqual } from "node:crypto";
import type { TokenView } from "@konverge/contracts";
import { isKonvergeError, KonvergeError, type ErrorCode } from "@konverge/core";
import type { Context, MiddlewareHandler } from "hono";
import { deleteCookie, setCookie } from "hono/cookie";
import type { SignedInUsers } from "./signed-in-users.ts";
import { isUserSession } from "./user-sessions.ts";
import type { Caller } from "./caller.ts";
import { digest } from "./digest.ts";
import { isLoopbackHost } from "./is-loopback.ts";
import type { KubernetesReviews, KubernetesUser } from "./kubernetes-reviews.ts";
import { atMostEvery } from "./at-most-every.ts";
import { placeOf, sessionCookieFor, sessionOf } from "./session-cookie.ts";
import { SESSION_MS, type SessionStore } from "./session-store.ts";
import { isExpired, TOKEN_PREFIX, type TokenStore } from "./token-store.ts";

/** The context of authenticated routes. */
export interface ApiEnv {
  readonly Variables: {
    caller: Caller;
    /** The time at which the caller was admitted. */
    admittedMs: number;
  };
}

/** Longest time that a revoked token remains valid. */
const REMEMBERED_MS = 1_000;
const MOST_REMEMBERED = 1_000;
/** Interval between reads of the list of tokens for open streams and waits. */
const VALID_MS = 500;
const REFUSALS: readonly ErrorCode[] = ["unauthorized", "forbidden"];
const SAFE: readonly string[] = ["GET", "HEAD", "OPTIONS"];
/** Headers that proxies add. A proxied request may come from another machine. */
const FORWARDED =
  /^(via|forwarded|x-forwarded(-.+)?|x-real-ip|x-original-.+|x-envoy-.+|cf-.+|(.+-)?client-ip)$/;
/** The longest author of an action. A shortened name could be that of another user. */
const LONGEST_NAME = 200;
const SEND_TOKEN = "send the header `Authorization: Bearer <token>`";

export interface Authenticator {
  /** Puts the caller into the context. @throws KonvergeError `unauthorized` or `forbidden` */
  readonly middleware: MiddlewareHandler<ApiEnv>;
  /** Returns the caller, or undefined if the request would be rejected. */
  identify(context: Context): Promise<Caller | undefined>;
  /** Starts the session of a browser and sets its cookie. Undefined for an unknown, revoked or expired token. */
  login(context: Context, token: string): Promise<Caller | undefined>;
  /** Ends the session of a browser, and leaves its cookie. Returns its caller; undefined without a valid session. */
  endSession(context: Context): Promise<Caller | undefined>;
  /** As `endSession`, and deletes the cookie. */
  logout(context: Context): Promise<Caller | undefined>;
  /** True while an authenticated caller would still be accepted. */
  isStillValid(caller: Caller): Promise<boolean>;
}

export interface AuthenticatorOptions {
  readonly tokens: TokenStore;
  readonly sessions: SessionStore;
  /** Admin token of the configuration. If set, every request needs a token. */
  readonly adminToken: string | undefined;
  /** Set for a loopback server: without a token, every local caller is an admin. */
  readonly isOpen: boolean;
  /** Set if Kubernetes tokens are accepted. Every request then needs a token. */
  readonly reviews?: KubernetesReviews | undefined;
  /** Set if users log in with an OIDC provider. Every request then needs a token or a session. */
  readonly users?: SignedInUsers | undefined;
  readonly onError: (error: unknown) => void;
}

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { tokens, sessions, adminToken, reviews, users, onError } = options;
  const isOpen =
    options.isOpen && adminToken === undefined && reviews === undefined && users === undefined;
  const expected = adminToken === undefined ? undefined : digest(adminToken);
  const remembered = new RememberedTokens((id) => void tokens.touch(id).catch(onError));
  const verify = async (token: string, via: "token" | "session"): Promise<Caller | undefined> => {
    // Digests have equal length, so the comparison reveals nothing about the token.
    if (expected !== undefined && timingSafeEqual(digest(token), expected)) return adminBy(via);
    return callerAs(await remembered.recall(token, () => tokens.find(token)), via);
  };
  const userOf = async (token: string): Promise<Caller | undefined> => {
    // Tokens of Konverge are never sent to the API server.
    if (reviews === undefined || token.startsWith(TOKEN_PREFIX)) return undefined;
    const user = await reviews.authenticate(token);
    if (user === undefined) return undefined;
    const isStillValid = async () => (await reviews.authenticate(token)) !== undefined;
    return userCaller(user, isStillValid);
  };
  const resume = async (session: string): Promise<Caller | undefined> => {
    if (isUserSession(session)) return await users?.resume(session);
    if (session.startsWith("admin.")) {
      const isKnown = expected !== undefined && (await sessions.find(session)) !== undefined;
      return isKnown ? adminBy("session") : undefined;
    }
    const read = async () => {
      const id = await sessions.find(session);
      return id === undefined ? undefined : await tokens.get(id);
    };
    return callerAs(await remembered.recall(session, read), "session");
  };
  const callerOf = async (context: Context): Promise<Caller> => {
    const { req } = context;
    const header = req.header("authorization");
    if (header !== undefined) {
      const [, token] = /^bearer +(\S+) *$/i.exec(header) ?? [];
      if (token !== undefined) {
        const caller = (await verify(token, "token")) ?? (await userOf(token));
        if (caller !== undefined) return caller;
      }
      throw new KonvergeError("unauthorized", `unknown, revoked or expired token; ${SEND_TOKEN}`);
    }
    const session = sessionOf(context);
    const caller = session === undefined ? undefined : await resume(session);
    if (caller !== undefined) {
      if (!SAFE.includes(req.method)) demandSameOrigin(context, "known");
      return caller;
    }
    if (!isOpen) throw new KonvergeError("unauthorized", SEND_TOKEN);
    demandLocal(context);
    demandOwnPage(context);
    if (!SAFE.includes(req.method)) demandSameOrigin(context, "unknown");
    return { id: "local", name: "local", role: "admin", scope: {}, via: "local" };
  };
  const readValid = atMostEvery(VALID_MS, async () => {
    const views = await tokens.list();
    return new Map(views.map((view) => [view.id, view]));
  });
  const endSession = async (context: Context): Promise<Caller | undefined> => {
    const session = sessionOf(context);
    if (session === undefined) return undefined;
    const caller = await orUndefined(resume(session));
    if (isUserSession(session)) await users?.end(session);
    else {
      remembered.forget(session);
      await sessions.end(session);
    }
    return caller;
  };
  return {
    middleware: async (context, next) => {
      context.set("caller", await callerOf(context));
      await next();
    },
    identify: (context) => orUndefined(callerOf(context)),
    async login(context, token) {
      const caller = await verify(token, "session");
      if (caller === undefined) return undefined;
      const { name, attributes } = sessionCookieFor(placeOf(context));
      const session = await sessions.create(caller.id);
      setCookie(context, name, session, { ...attributes, maxAge: SESSION_MS / 1_000 });
      return caller;
    },
    endSession,
    async logout(context) {
      const caller = await endSession(context);
      const { name, attributes } = sessionCookieFor(placeOf(context));
      deleteCookie(context, name, attributes);
      return caller;
    },
    async isStillValid({ id, via, isStillValid }) {
      if (isStillValid !== undefined) return await isStillValid();
      if (via === "local" || via === "process" || id === "admin") return true;
      const view = (await readValid()).get(id);
      return view !== undefined && !isExpired(view);
    },
  };
}

/** Tokens by credential, for a second after they were read. */
class RememberedTokens {
  readonly #onRead: (id: string) => void;
  readonly #known = new Map<string, { readonly view: TokenView; readonly untilMs: number }>();

  constructor(onRead: (id: string) => void) {
    this.#onRead = onRead;
  }

  async recall(
    credential: string,
    read: () => Promise<TokenView | undefined>,
  ): Promise<TokenView | undefined> {
    const id = digest(credential).toString("base64url");
    const known = this.#known.get(id);
    if (known !== undefined && known.untilMs > performance.now() && !isExpired(known.view)) {
      return known.view;
    }
    this.#known.delete(id);
    const view = await read();
    if (view === undefined) return undefined;
    if (this.#known.size >= MOST_REMEMBERED) this.#known.clear();
    this.#known.set(id, { view, untilMs: performance.now() + REMEMBERED_MS });
    this.#onRead(view.id);
    return view;
  }

  forget(credential: string): void {
    this.#known.delete(digest(credential).toString("base64url"));
  }
}

function callerAs(view: TokenView | undefined, via: Caller["via"]): Caller | undefined {
  if (view === undefined) return undefined;
  const { id, name, role, scope, classes } = view;
  return { id, name, role, scope, classes, via };
}

/** Returns undefined for a rejected caller. */
async function orUndefined(found: Promise<Caller | undefined>): Promise<Caller | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isKonvergeError(error) && REFUSALS.includes(error.code)) return undefined;
    throw error;
  }
}

/**
 * Without rights, until the API server has been asked for those of a request.
 * @throws KonvergeError `forbidden`
 */
function userCaller(user: KubernetesUser, isStillValid: () => Promise<boolean>): Caller {
  const { username, uid } = user;
  // No token has such a name.
  const name = `kubernetes:${username}`;
  if (name.length > LONGEST_NAME) {
    const detail = `the name of the Kubernetes user must have at most ${LONGEST_NAME - name.length + username.length} characters (got ${username.length}: "${username.slice(0, 60)}..."); use a user or service account with a shorter name`;
    throw new KonvergeError("forbidden", detail);
  }
  return {
    id: `kubernetes.${digest(JSON.stringify([username, uid])).toString("base64url")}`,
    name,
    role: "viewer",
    scope: { clusters: [], controllers: [], namespaces: [] },
    via: "kubernetes",
    user,
    isStillValid,
  };
}

function adminBy(via: "token" | "session"): Caller {
  return { id: "admin", name: "admin", role: "admin", scope: {}, via };
}

/**
 * Rejects requests of other sites. A browser sends cookies, and reaches loopback, for any open page, and names its origin.
 * @param silent whether a request without an origin, which is not from a browser, is accepted
 * @throws KonvergeError `forbidden`
 */
export function demandSameOrigin({ req }: Context, silent: "known" | "unknown"): void {
  const site = req.header("sec-fetch-site");
  const origin = req.header("origin");
  if (site === "same-origin") return;
  if (site === undefined && origin === undefined && silent === "unknown") return;
  if (site === undefined && origin !== undefined && hostOf(origin) === req.header("host")) return;
  throw new KonvergeError("forbidden", "cross-origin request; Origin must match the host");
}

/**
 * Rejects DNS rebinding, and proxies that can be recognized. A proxy on this machine that adds no header and speaks HTTP/1.1
 * cannot be told apart from a local client.
 */
function demandLocal({ req, env }: Context): void {
  const host = req.header("host") ?? "";
  if (!isLoopbackHost(host)) {
    const detail = `requests without a token require a loopback host (got "${host}")`;
    throw new KonvergeError("forbidden", detail);
  }
  const { incoming } = (env ?? {}) as { readonly incoming?: { readonly httpVersion?: string } };
  const sign =
    Object.keys(req.header()).find((name) => FORWARDED.test(name)) ??
    (incoming?.httpVersion === "1.0" ? "HTTP/1.0" : undefined);
  if (sign === undefined) return;
  const detail = `proxied requests (${sign}) require a token; ${SEND_TOKEN}`;
  throw new KonvergeError("forbidden", detail);
}

/** Rejects pages of another host, even if the browser calls them same-origin: the page came through a proxy. */
function demandOwnPage({ req }: Context): void {
  const page = req.header("origin") ?? req.header("referer");
  const host = req.header("host")?.toLowerCase();
  if (page === undefined || hostOf(page) === host) return;
  // A link on another site may lead to a page of the dashboard.
  if (req.header("origin") === undefined && req.header("sec-fetch-mode") === "navigate") return;
  throw new KonvergeError("forbidden", "cross-origin request; Origin must match the host");
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}
