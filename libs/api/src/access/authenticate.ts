import { timingSafeEqual } from "node:crypto";
import type { TokenView } from "@konverge/contracts";
import { isKonvergeError, KonvergeError, type ErrorCode } from "@konverge/core";
import type { Context, MiddlewareHandler } from "hono";
import { getCookie } from "hono/cookie";
import type { Caller } from "./caller.ts";
import { digest } from "./digest.ts";
import { isLoopbackHost } from "./is-loopback.ts";
import { atMostEvery } from "./at-most-every.ts";
import { isExpired, type TokenStore } from "./token-store.ts";

/** The context of authenticated routes. */
export interface ApiEnv {
  readonly Variables: { caller: Caller };
}

export const SESSION_COOKIE = "konverge_session";
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
const SEND_TOKEN = "send the header `Authorization: Bearer <token>`";

export interface Authenticator {
  /** Puts the caller into the context. @throws KonvergeError `unauthorized` or `forbidden` */
  readonly middleware: MiddlewareHandler<ApiEnv>;
  /** Returns the caller, or undefined if the request would be rejected. */
  identify(context: Context): Promise<Caller | undefined>;
  /** Undefined for an unknown, revoked or expired token. */
  verify(token: string, via: "token" | "session"): Promise<Caller | undefined>;
  /** True while an authenticated caller would still be accepted. */
  isStillValid(caller: Caller): Promise<boolean>;
}

export interface AuthenticatorOptions {
  readonly tokens: TokenStore;
  /** Admin token of the configuration. If set, every request needs a token. */
  readonly adminToken: string | undefined;
  /** Set for a loopback server: without a token, every local caller is an admin. */
  readonly isOpen: boolean;
  readonly onError: (error: unknown) => void;
}

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { tokens, adminToken, onError } = options;
  const isOpen = options.isOpen && adminToken === undefined;
  const expected = adminToken === undefined ? undefined : digest(adminToken);
  const remembered = new Map<string, { readonly view: TokenView; readonly untilMs: number }>();

  const find = async (token: string): Promise<TokenView | undefined> => {
    const id = digest(token).toString("base64url");
    const known = remembered.get(id);
    if (known !== undefined && known.untilMs > performance.now() && !isExpired(known.view)) {
      return known.view;
    }
    remembered.delete(id);
    const view = await tokens.find(token);
    if (view === undefined) return undefined;
    if (remembered.size >= MOST_REMEMBERED) remembered.clear();
    remembered.set(id, { view, untilMs: performance.now() + REMEMBERED_MS });
    tokens.touch(view.id).catch(onError);
    return view;
  };
  const verify: Authenticator["verify"] = async (token, via) => {
    // Digests have equal length, so the comparison reveals nothing about the token.
    if (expected !== undefined && timingSafeEqual(digest(token), expected)) {
      return { id: "admin", name: "admin", role: "admin", scope: {}, via };
    }
    const view = await find(token);
    if (view === undefined) return undefined;
    const { id, name, role, scope } = view;
    return { id, name, role, scope, via };
  };
  const callerOf = async (context: Context): Promise<Caller> => {
    const { req } = context;
    const header = req.header("authorization");
    if (header !== undefined) {
      const [, token] = /^bearer +(\S+) *$/i.exec(header) ?? [];
      const caller = token === undefined ? undefined : await verify(token, "token");
      if (caller !== undefined) return caller;
      throw new KonvergeError("unauthorized", `unknown, revoked or expired token; ${SEND_TOKEN}`);
    }
    const cookie = getCookie(context, SESSION_COOKIE);
    const caller = cookie === undefined ? undefined : await verify(cookie, "session");
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
  return {
    middleware: async (context, next) => {
      context.set("caller", await callerOf(context));
      await next();
    },
    async identify(context) {
      try {
        return await callerOf(context);
      } catch (error) {
        if (isKonvergeError(error) && REFUSALS.includes(error.code)) return undefined;
        throw error;
      }
    },
    verify,
    async isStillValid({ id, via }) {
      if (via === "local" || via === "process" || id === "admin") return true;
      const view = (await readValid()).get(id);
      return view !== undefined && !isExpired(view);
    },
  };
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
