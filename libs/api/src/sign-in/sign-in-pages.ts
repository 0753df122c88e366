import { CALLBACK_PATH, type SignInSettings } from "@konverge/contracts";
import {
  ERRORS,
  isKonvergeError,
  KonvergeError,
  type BucketLimits,
  type ErrorCode,
} from "@konverge/core";
import { Hono, type Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import { demandSameOrigin } from "../access/authenticate.ts";
import { Buckets } from "../access/buckets.ts";
import { sessionCookieFor, type CookiePlace } from "../access/session-cookie.ts";
import type { Caller } from "../access/caller.ts";
import type { AuditLog } from "../audit/audit-log.ts";
import { LOGIN_MS, LONGEST_LOGIN_MS } from "./login-cookie.ts";
import { answerMessage, type MessagePage } from "./message-page.ts";
import type { OidcProvider } from "./oidc-provider.ts";
import { returnAddress } from "./return-address.ts";
import { callerOf } from "../access/signed-in-users.ts";
import type { UserSessions } from "../access/user-sessions.ts";

const COOKIE = "konverge_login";
/** The rate of all logins that a process begins, and of those that it completes, since each one calls the provider. */
const RATE: BucketLimits = { ratePerSecond: 20, burst: 100 };
const REFUSALS: readonly ErrorCode[] = ["unauthorized", "forbidden"];

export interface SignInPagesOptions {
  readonly settings: SignInSettings;
  readonly provider: OidcProvider;
  readonly sessions: UserSessions;
  /** Ends the session that a browser already has, and returns its caller. */
  readonly endSession: (context: Context) => Promise<Caller | undefined>;
  readonly audit: AuditLog;
  /** Receives each failed login. */
  readonly onFailed: (context: Context, error: unknown) => void;
}

/** The pages that log in the users of an OIDC provider. */
export function signInPages(options: SignInPagesOptions): Hono {
  const { settings, provider, sessions, audit } = options;
  const base = settings.redirectUrl.slice(0, -CALLBACK_PATH.length);
  const place = { isSecure: base.startsWith("https:"), path: new URL(base).pathname };
  const login = loginCookieFor(place);
  const buckets = new Buckets(RATE, 2);
  const admit = (part: "begin" | "complete") => {
    const waitMs = buckets.take(part);
    if (waitMs === 0) return;
    throw new KonvergeError("rate_limited", "too many users are signing in; retry later", {
      retryAfterMs: Math.ceil(waitMs),
    });
  };
  const app = new Hono();
  app.onError((error, context) => {
    options.onFailed(context, error);
    const page = failureOf(error, base);
    if (page.status === 503 || page.status === 429) context.header("retry-after", "1");
    return answerMessage(context, page);
  });
  app.get("/auth/login", async (context) => {
    admit("begin");
    const returnTo = returnAddress(context.req.query("returnTo") ?? "", base);
    const { url, cookie } = await provider.begin(returnTo);
    setCookie(context, login.name, cookie, { ...login.attributes, maxAge: LOGIN_MS / 1_000 });
    context.header("cache-control", "no-store");
    return context.redirect(url, 302);
  });
  app.get(`/${CALLBACK_PATH}`, async (context) => {
    admit("complete");
    const cookie = getCookie(context, login.name);
    // A login is used once, also if it fails.
    deleteCookie(context, login.name, login.attributes);
    const refuse = (code: string, name?: string) =>
      audit.gather({
        action: "refused",
        ...(name === undefined ? { by: "unknown" } : { by: name, via: "oidc" as const }),
        filter: `signIn: ${code}`,
        count: 1,
      });
    try {
      if (cookie === undefined) throw new KonvergeError("unauthorized", noCookie(base));
      const { search } = new URL(context.req.url);
      const { user, returnTo, state } = await provider.complete(search, cookie);
      if (!(await sessions.complete(state, LONGEST_LOGIN_MS))) {
        throw new KonvergeError("unauthorized", noCookie(base));
      }
      const caller = callerOf(user, settings.roles);
      if (caller === undefined) {
        await sessions.endAll(user.id);
        refuse("forbidden", `oidc:${user.name}`);
        return answerMessage(context, noRole(user.name, base));
      }
      await options.endSession(context);
      const session = await sessions.create(user, settings.sessionMs);
      const { name, attributes } = sessionCookieFor(place);
      setCookie(context, name, session, { ...attributes, maxAge: settings.sessionMs / 1_000 });
      await audit.record({
        action: "session.create",
        by: caller.name,
        via: "oidc",
        filter: `role: ${caller.role}, groups: ${user.groups.join(", ")}`,
      });
      // Browsers do not send a strict cookie after a redirect from the provider, but after a page of this site.
      const url = returnAddress(returnTo, base);
      return answerMessage(context, { ...DONE, link: { url, text: "Open the dashboard" } });
    } catch (error) {
      if (isKonvergeError(error) && REFUSALS.includes(error.code)) refuse(error.code);
      throw error;
    }
  });
  app.post("/auth/logout", async (context) => {
    demandSameOrigin(context, "unknown");
    const caller = await options.endSession(context);
    if (caller !== undefined) {
      await audit.record({ action: "session.end", by: caller.name, via: caller.via });
    }
    const { name, attributes } = sessionCookieFor(place);
    deleteCookie(context, name, attributes);
    context.header("cache-control", "no-store");
    return context.json({ url: (await provider.logoutUrl(base)) ?? base });
  });
  return app;
}

const DONE = {
  status: 200,
  title: "Signed in",
  text: "Opening the dashboard.",
  isForwarding: true,
} as const;

function loginCookieFor({ isSecure, path }: CookiePlace) {
  return {
    name: isSecure && path === "/" ? `__Host-${COOKIE}` : COOKIE,
    // The provider's redirect to the callback comes from another site.
    attributes: { path, httpOnly: true, sameSite: "Lax", secure: isSecure } as const,
  };
}

function noCookie(base: string): string {
  return `the login has expired, was completed already, or was started at another address than ${base}; sign in again`;
}

function noRole(user: string, base: string): MessagePage {
  return {
    status: 403,
    title: "No access",
    text: `The user "${user}" is not in a group with a role. An admin can add the user to a group, or the group to KONVERGE_OIDC_ROLES.`,
    link: { url: base, text: "Back" },
  };
}

function failureOf(error: unknown, base: string): MessagePage {
  const code = isKonvergeError(error) ? error.code : "internal";
  const text =
    isKonvergeError(error) && code !== "internal"
      ? error.message
      : "See the log of the API process.";
  const { httpStatus } = ERRORS[code];
  return {
    status: httpStatus as MessagePage["status"],
    title: "Sign-in failed",
    text: `${text.charAt(0).toUpperCase()}${text.slice(1)}`,
    link: { url: base, text: "Back to the login page" },
  };
}
