import {
  acceptedReconcileSchema,
  operatorActionSchema,
  pauseListSchema,
  reconcileNowSchema,
  resumeResponseSchema,
} from "@konverge/contracts";
import { actionRoute, route, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { pause, resume } from "../queues/queue-actions.ts";
import { PREFER, requestOne } from "../queues/request-reconcile.ts";
import { targetOf } from "../views/object-view.ts";

const PATH = "/v1/objects/{cluster}/{controller}/{namespace}/{name}";

/** Requests, pauses and resumptions of one object. `_` is the namespace of cluster-scoped objects. */
export function objectActionRoutes(access: QueueAccess): Route[] {
  return [
    route({
      id: "reconcileObject",
      method: "post",
      path: `${PATH}/reconcile`,
      summary: "Reconcile an object now",
      role: "operator",
      body: reconcileNowSchema,
      headers: PREFER,
      answer: acceptedReconcileSchema,
      status: 202,
      problems: ["unknown_controller", "queue_full"],
      handle: ({ params, body, ...asked }) =>
        requestOne(access, { ...targetOf(params), ...body }, asked),
    }),
    actionRoute({
      id: "pauseObject",
      path: `${PATH}/pause`,
      summary: "Pause an object",
      body: operatorActionSchema,
      answer: pauseListSchema,
      problems: ["unknown_controller"],
      handle: ({ params, body, ...acting }) =>
        pause(access, { ...targetOf(params), ...body }, acting),
    }),
    actionRoute({
      id: "resumeObject",
      path: `${PATH}/resume`,
      summary: "Resume an object",
      body: operatorActionSchema,
      answer: resumeResponseSchema,
      problems: ["unknown_controller", "not_found"],
      handle: ({ params, body, ...acting }) =>
        resume(access, { ...targetOf(params), ...body }, acting),
    }),
  ];
}
