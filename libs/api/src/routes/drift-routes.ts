import { driftDetailSchema, driftListSchema, driftQuerySchema } from "@konverge/contracts";
import { demand } from "../access/caller.ts";
import { readRoute, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { listDrift, readDrift } from "../views/drift.ts";
import { findKey } from "../views/object-view.ts";

/** The changes that observing controllers would make. `_` is the namespace of cluster-scoped objects. */
export function driftRoutes(access: QueueAccess): Route[] {
  return [
    readRoute({
      id: "listDrift",
      path: "/v1/drift",
      summary: "List the changes that observing controllers would make, in groups of equal changes",
      query: driftQuerySchema,
      answer: driftListSchema,
      handle: ({ query, caller }) => listDrift(access, query, caller),
    }),
    readRoute({
      id: "getDrift",
      path: "/v1/drift/{cluster}/{controller}/{namespace}/{name}",
      summary: "Get the changes that an observing controller would make for an object",
      answer: driftDetailSchema,
      problems: ["unknown_controller", "not_found"],
      async handle({ params, caller }) {
        demand(caller, params);
        const { key } = await findKey(access, params);
        return await readDrift(access, key);
      },
    }),
  ];
}
