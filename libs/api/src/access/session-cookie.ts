import type { Context } from "hono";
import { getCookie } from "hono/cookie";

const COOKIE = "konverge_session";
/** Over TLS. Browsers accept such a cookie from its own host only. */
const HOST_COOKIE = `__Host-${COOKIE}`;
/** A path prefix reported by a proxy. */
const PREFIX = /^(\/[\w.-]+)+$/;

/** The address at which browsers see the dashboard. */
export interface CookiePlace {
  /** True for HTTPS. Without it, browsers do not return secure cookies. */
  readonly isSecure: boolean;
  /** Ends with a slash. */
  readonly path: string;
}

export function sessionOf(context: Context): string | undefined {
  return getCookie(context, HOST_COOKIE) ?? getCookie(context, COOKIE);
}

/** Returns the name and attributes of the cookie. Below a path prefix, the neighbors of the same host do not receive it. */
export function sessionCookieFor({ isSecure, path }: CookiePlace) {
  return {
    name: isSecure && path === "/" ? HOST_COOKIE : COOKIE,
    attributes: { path, httpOnly: true, sameSite: "Strict", secure: isSecure } as const,
  };
}

/** Returns the place that a proxy reports in its headers. */
export function placeOf({ req }: Context): CookiePlace {
  const proto = req.header("x-forwarded-proto") ?? new URL(req.url).protocol;
  const prefix = req.header("x-forwarded-prefix") ?? "";
  return {
    isSecure: proto.startsWith("https"),
    path: PREFIX.test(prefix) ? `${prefix}/` : "/",
  };
}
