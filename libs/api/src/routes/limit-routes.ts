import { limitListSchema } from "@konverge/contracts";
import type { GuardControl } from "@konverge/guard";
import { isUnrestricted } from "../access/caller.ts";
import { route, type Route } from "../http/route.ts";

/** The named limits of the installation. */
export function limitRoutes(guards: Pick<GuardControl, "limits">): Route[] {
  return [
    route({
      id: "listLimits",
      method: "get",
      path: "/v1/limits",
      summary: "List the named limits of external services with their use",
      role: "viewer",
      answer: limitListSchema,
      async handle({ caller }) {
        const items = await guards.limits();
        // Keys may be names of tenants outside of the scope.
        if (isUnrestricted(caller)) return { items };
        return { items: items.map((limit) => ({ ...limit, keys: [] })) };
      },
    }),
  ];
}
