import { sessionSchema, whoamiSchema, type Whoami } from "@konverge/contracts";
import { KonvergeError } from "@konverge/core";
import { z } from "zod";
import { demandSameOrigin, type Authenticator } from "../access/authenticate.ts";
import type { Caller } from "../access/caller.ts";
import { readRoute, route, type Route } from "../http/route.ts";

/**
 * Login for browsers. The cookie is a session that scripts cannot read and other sites cannot send. It ends with the logout and
 * with the token.
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
      async handle({ body: { token }, context, audit }) {
        demandSameOrigin(context, "unknown");
        const caller = await authenticator.login(context, token);
        if (caller === undefined) {
          throw new KonvergeError("unauthorized", "unknown, revoked or expired token");
        }
        audit({ action: "session.create", via: "token" }, caller.name);
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
      async handle({ context, audit }) {
        demandSameOrigin(context, "unknown");
        const caller = await authenticator.logout(context);
        if (caller !== undefined) audit({ action: "session.end", via: caller.via }, caller.name);
        return context.body(null, 204);
      },
    }),
    readRoute({
      id: "whoami",
      path: "/v1/whoami",
      summary: "Get the caller and its permissions",
      answer: whoamiSchema,
      handle: async ({ caller }) => whoami(caller),
    }),
  ];
}

function whoami({ name, role, scope, classes, via }: Caller): Whoami {
  return { name, role, scope, ...(classes === undefined ? {} : { classes: [...classes] }), via };
}
