import { limitListSchema } from "@konverge/contracts";
import type { GuardControl } from "@konverge/guard";
import { isUnrestricted } from "../access/caller.ts";
import { readRoute, type Route } from "../http/route.ts";

/** In simple requests: up to 1,000 keys are counted per limit. */
const PRICE = 20;

/** The named limits of the installation. */
export function limitRoutes(guards: Pick<GuardControl, "limits">): Route[] {
  return [
    readRoute({
      id: "listLimits",
      path: "/v1/limits",
      summary: "List the named limits of external services with their use",
      answer: limitListSchema,
      price: () => PRICE,
      async handle({ caller }) {
        const items = await guards.limits();
        // Keys may be names of tenants outside of the scope.
        if (isUnrestricted(caller)) return { items };
        return { items: items.map((limit) => ({ ...limit, keys: [] })) };
      },
    }),
  ];
}
