import { sessionSchema, whoamiSchema, type Whoami } from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import type { Context } from "hono";
import { deleteCookie, setCookie } from "hono/cookie";
import { z } from "zod";
import { demandSameOrigin, SESSION_COOKIE, type Authenticator } from "../access/authenticate.ts";
import type { Caller } from "../access/caller.ts";
import { route, type Route } from "../http/route.ts";

/** A working day. The token can expire earlier. */
const MAX_AGE_S = 12 * 3_600;

/**
 * Login for browsers. The token is stored in a cookie that scripts cannot read and other sites cannot send. Revoking the
 * token ends the session.
 */
export function sessionRoutes(authenticator: Authenticator): Route[] {
  return [
    route({
      id: "login",
      method: "post",
      path: "/v1/session",
      summary: "Log in a browser with a token",
      role: "none",
      body: sessionSchema,
      answer: whoamiSchema,
      problems: ["unauthorized", "forbidden"],
      async handle({ body: { token }, context }) {
        demandSameOrigin(context, "unknown");
        const caller = await authenticator.verify(token, "session");
        if (caller === undefined) {
          throw new KonvergeError("unauthorized", "unknown, revoked or expired token");
        }
        setCookie(context, SESSION_COOKIE, token, { ...attributes(context), maxAge: MAX_AGE_S });
        return context.json(whoami(caller));
      },
    }),
    route({
      id: "logout",
      method: "delete",
      path: "/v1/session",
      summary: "Log out a browser",
      role: "none",
      answer: z.undefined(),
      status: 204,
      problems: ["forbidden"],
      async handle({ context }) {
        demandSameOrigin(context, "unknown");
        deleteCookie(context, SESSION_COOKIE, attributes(context));
        return context.body(null, 204);
      },
    }),
    route({
      id: "whoami",
      method: "get",
      path: "/v1/whoami",
      summary: "Get the caller and its permissions",
      role: "viewer",
      answer: whoamiSchema,
      handle: async ({ caller }) => whoami(caller),
    }),
  ];
}

function whoami({ name, role, scope, via }: Caller): Whoami {
  return { name, role, scope, via };
}

function attributes({ req }: Context) {
  const proto = req.header("x-forwarded-proto") ?? new URL(req.url).protocol;
  return {
    path: "/",
    httpOnly: true,
    sameSite: "Strict",
    // Without TLS, browsers do not return secure cookies.
    secure: proto.startsWith("https"),
  } as const;
}
