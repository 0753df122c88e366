import { explanationSchema } from "@konverge/contracts";
import type { GuardControl } from "@konverge/guard";
import { demand } from "../access/caller.ts";
import { explainObject } from "../explain/explain-object.ts";
import { readFacts } from "../explain/read-facts.ts";
import { readRoute, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";

/** Two calls of an API server and about 30 of Redis, in simple requests. */
const PRICE = 30;

/** Explanations of objects. */
export function explanationRoutes({
  access,
  guards,
}: {
  readonly access: QueueAccess;
  readonly guards: GuardControl;
}): Route[] {
  return [
    readRoute({
      id: "explainObject",
      path: "/v1/objects/{cluster}/{controller}/{namespace}/{name}/explanation",
      summary: "Explain why an object is not reconciled or not ready",
      answer: explanationSchema,
      problems: ["unknown_controller", "invalid_request"],
      price: () => PRICE,
      async handle({ params, caller, context }) {
        demand(caller, params);
        const { signal } = context.req.raw;
        return explainObject(await readFacts({ access, guards, caller, signal }, params));
      },
    }),
  ];
}
