import {
  keyListSchema,
  keyQuerySchema,
  operatorActionListSchema,
  operatorActionSchema,
  operatorActionsQuerySchema,
  pauseListSchema,
  resumeResponseSchema,
} from "@konverge/contracts";
import { demand } from "../access/caller.ts";
import { actionRoute, readRoute, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { pause, resume } from "../queues/queue-actions.ts";
import { listKeys, priceOfPage } from "../queues/queue-view.ts";

/** The queue of a controller and its keys. */
export function queueRoutes(access: QueueAccess): Route[] {
  return [
    actionRoute({
      id: "pauseQueue",
      path: "/v1/queues/{cluster}/{controller}/pause",
      summary: "Pause a controller",
      body: operatorActionSchema,
      answer: pauseListSchema,
      problems: ["unknown_controller"],
      handle: ({ params: { cluster, controller }, body, ...acting }) =>
        pause(access, { cluster, controller, ...body }, acting),
    }),
    actionRoute({
      id: "resumeQueue",
      path: "/v1/queues/{cluster}/{controller}/resume",
      summary: "Resume a controller",
      body: operatorActionSchema,
      answer: resumeResponseSchema,
      problems: ["unknown_controller", "not_found"],
      handle: ({ params: { cluster, controller }, body, ...acting }) =>
        resume(access, { cluster, controller, ...body }, acting),
    }),
    readRoute({
      id: "listKeys",
      path: "/v1/keys",
      summary: "List keys by phase, namespace and name",
      query: keyQuerySchema,
      answer: keyListSchema,
      problems: ["unknown_controller"],
      price: ({ query }) => priceOfPage(query.limit),
      handle: ({ query, ...asked }) => listKeys(access, query, asked),
    }),
    readRoute({
      id: "listOperatorActions",
      path: "/v1/operator-actions",
      summary: "List the operator actions on a controller, newest first",
      query: operatorActionsQuerySchema,
      answer: operatorActionListSchema,
      problems: ["unknown_controller"],
      async handle({ query, caller }) {
        demand(caller, query);
        const { queue } = await access.find(query.cluster, query.controller);
        return { items: await queue.control.listOperatorActions() };
      },
    }),
  ];
}
