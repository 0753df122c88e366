import {
  acceptedReconcileSchema,
  cancelResponseSchema,
  createReconcileSchema,
  createReconcilesSchema,
  keyListSchema,
  keyQuerySchema,
  operatorActionSchema,
  reconcileResultsSchema,
  reconcileStateSchema,
  waitQuerySchema,
} from "@konverge/contracts";
import { classFor, demand } from "../access/caller.ts";
import { placeNamed, placeOf } from "../queues/place-of.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { cancelRequest, keyOfRequest } from "../queues/queue-actions.ts";
import { listKeys, priceOfPage } from "../queues/queue-view.ts";
import { requestBatch } from "../queues/reconcile-batch.ts";
import { noteOf, PREFER, requestOne, triggerOf } from "../queues/request-reconcile.ts";
import { actionRoute, readRoute, route, type Route } from "../http/route.ts";
import { preferredWaitMs, waitForEnd } from "../queues/wait-for-end.ts";

const MAX_BODY_KIB = 64;
const MAX_BATCH_KIB = 1_024;
/** Items of a batch that are as much work as a simple request. */
const ITEMS_PER_TOKEN = 20;

/** Requests, single or in batches, and their results. */
export function reconcileRoutes(access: QueueAccess): Route[] {
  return [
    route({
      id: "createReconcile",
      method: "post",
      path: "/v1/reconciles",
      summary: "Request a reconcile; `Prefer: wait=20` waits for its end",
      role: "operator",
      body: createReconcileSchema,
      maxBodyKiB: MAX_BODY_KIB,
      answer: acceptedReconcileSchema,
      status: 202,
      headers: PREFER,
      problems: ["unknown_controller", "queue_full"],
      handle: ({ body, ...asked }) => requestOne(access, body, asked),
    }),
    readRoute({
      id: "listReconciles",
      path: "/v1/reconciles",
      summary: "List active requests by key; with `phase`, all keys of that phase",
      query: keyQuerySchema,
      answer: keyListSchema,
      problems: ["unknown_controller"],
      price: ({ query }) => priceOfPage(query.limit),
      async handle({ query, caller, scan }) {
        const { items, ...rest } = await listKeys(access, query, { caller, scan });
        if (query.phase !== undefined) return { items, ...rest };
        return { items: items.filter(({ phase }) => phase !== "idle"), ...rest };
      },
    }),
    route({
      id: "createReconciles",
      method: "post",
      path: "/v1/reconciles/batch",
      summary: "Request up to 1,000 reconciles, with one result per item",
      role: "operator",
      body: createReconcilesSchema,
      maxBodyKiB: MAX_BATCH_KIB,
      answer: reconcileResultsSchema,
      price: ({ body: { items } }) => items.length / ITEMS_PER_TOKEN,
      async handle({ body: { items }, caller, context, audit }) {
        const trigger = triggerOf(caller, context);
        const answer = await requestBatch(access, items, {
          trigger,
          check: (item) => {
            demand(caller, placeNamed(item));
            return classFor(caller, item.class, "event");
          },
        });
        for (const [index, item] of items.entries()) {
          if (!("error" in (answer.items[index] ?? { error: 0 }))) audit(noteOf(item));
        }
        return answer;
      },
    }),
    readRoute({
      id: "getReconcile",
      path: "/v1/reconciles/{id}",
      summary: "Get the status of a request; `wait` or `Prefer: wait=20` waits for its end",
      query: waitQuerySchema,
      headers: PREFER,
      answer: reconcileStateSchema,
      problems: ["not_found"],
      async handle({ params: { id }, query, caller, context, openWait }) {
        const key = keyOfRequest(id);
        demand(caller, placeOf(key));
        const { queue } = await access.find(key.cluster, key.controller);
        using wait = openWait(query.wait ?? preferredWaitMs(context));
        return await waitForEnd(queue, id, wait);
      },
    }),
    actionRoute({
      id: "cancelReconcile",
      path: "/v1/reconciles/{id}/cancel",
      summary: "Cancel one request; other requests for the object continue",
      body: operatorActionSchema,
      answer: cancelResponseSchema,
      problems: ["not_found", "unknown_controller"],
      handle: ({ params: { id }, body: action, ...acting }) =>
        cancelRequest(access, id, { action, ...acting }),
    }),
  ];
}
