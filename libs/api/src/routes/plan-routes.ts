import {
  objectPlanSchema,
  planListSchema,
  planQuerySchema,
  waitQuerySchema,
} from "@konverge/contracts";
import { demand } from "../access/caller.ts";
import { readRoute, route, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { preferredWaitMs } from "../queues/wait-for-end.ts";
import { planObject, readObjectPlan, readObjectPlans } from "../views/object-plan.ts";
import { findKey } from "../views/object-view.ts";

/** The cost of a plan for the rate limit, in simple requests: an attempt of the handler. */
const PLAN_PRICE = 20;
const PATH = "/v1/objects/{cluster}/{controller}/{namespace}/{name}/plans";
const PREFER = { prefer: "wait=20 waits up to 20 s (maximum 60) for the end" };

/** Plans of objects: the changes that their next attempts would make. */
export function planRoutes(access: QueueAccess): Route[] {
  return [
    route({
      id: "planObject",
      method: "post",
      path: PATH,
      summary: "Plan the next attempt of an object; `Prefer: wait=20` waits for the result",
      role: "operator",
      query: planQuerySchema,
      headers: PREFER,
      answer: objectPlanSchema,
      problems: ["unknown_controller"],
      price: () => PLAN_PRICE,
      async handle({ params, query, caller, ...asked }) {
        demand(caller, params);
        const { key } = await findKey(access, params);
        return await planObject(access, key, { caller, class: query.class, ...asked });
      },
    }),
    readRoute({
      id: "listPlans",
      path: PATH,
      summary: "List the plans of an object, newest first",
      answer: planListSchema,
      problems: ["unknown_controller"],
      async handle({ params, caller }) {
        demand(caller, params);
        const { key } = await findKey(access, params);
        return await readObjectPlans(access, key);
      },
    }),
    readRoute({
      id: "getPlan",
      path: `${PATH}/{id}`,
      summary: "Get one plan of an object; `Prefer: wait=20` waits for its end",
      query: waitQuerySchema,
      headers: PREFER,
      answer: objectPlanSchema,
      problems: ["unknown_controller", "not_found"],
      async handle({ params: { id, ...target }, query, caller, context, openWait }) {
        demand(caller, target);
        const { key } = await findKey(access, target);
        using wait = openWait(query.wait ?? preferredWaitMs(context));
        return await readObjectPlan(access, key, id, wait);
      },
    }),
  ];
}
