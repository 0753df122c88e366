import { sessionSchema, whoamiSchema, type Whoami } from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import type { Context } from "hono";
import { deleteCookie, setCookie } from "hono/cookie";
import { z } from "zod";
import { demandSameOrigin, SESSION_COOKIE, type Authenticator } from "../access/authenticate.ts";
import type { Caller } from "../access/caller.ts";
import { route, type Route } from "../http/route.ts";

/** A day of work. The token itself may end earlier. */
const MAX_AGE_S = 12 * 3_600;

/**
 * Browsers log in with a token and keep it in a cookie that no script can read, and that no other site's page can send.
 * The cookie is the token: what revokes the one ends the other.
 */
export function sessionRoutes(authenticator: Authenticator): Route[] {
  return [
    route({
      id: "login",
      method: "post",
      path: "/v1/session",
      summary: "Log a browser in with a token",
      role: "none",
      body: sessionSchema,
      answer: whoamiSchema,
      problems: ["unauthorized", "forbidden"],
      async handle({ body: { token }, context }) {
        demandSameOrigin(context, "unknown");
        const caller = await authenticator.verify(token, "session");
        if (caller === undefined) {
          throw new KonvergeError("unauthorized", "this token is not known, or not any more");
        }
        setCookie(context, SESSION_COOKIE, token, { ...attributes(context), maxAge: MAX_AGE_S });
        return context.json(whoami(caller));
      },
    }),
    route({
      id: "logout",
      method: "delete",
      path: "/v1/session",
      summary: "Log a browser out",
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
      summary: "Who asks, and what that allows",
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
    // Without TLS a browser would not send it back.
    secure: proto.startsWith("https"),
  } as const;
}
