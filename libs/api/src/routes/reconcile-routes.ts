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
  type AcceptedReconcile,
  type CreateReconcile,
} from "@konverge/contracts";
import {
  defined,
  formatTraceparent,
  namespaceSegment,
  parseTraceparent,
  type Trigger,
} from "@konverge/core";
import type { Context } from "hono";
import { demand, type Caller } from "../access/caller.ts";
import { placeNamed, placeOf } from "../queues/place-of.ts";
import { keyFor, type QueueAccess } from "../queues/queue-access.ts";
import { keyOfRequest, type QueueDesk } from "../queues/queue-desk.ts";
import { jsonResponse } from "../http/json-response.ts";
import { listKeys } from "./queue-routes.ts";
import { requestBatch } from "../queues/reconcile-batch.ts";
import { route, type Route, type RouteInput } from "../http/route.ts";
import { preferredWaitMs, waitForEnd } from "../queues/wait-for-end.ts";

const MAX_BODY_KIB = 64;
const MAX_BATCH_KIB = 1_024;

/** What the routes that wait look at. */
export const PREFER: Readonly<Record<string, string>> = {
  prefer: "wait=20 waits up to 20 s (at most 60) for the end",
  traceparent: "W3C trace context, which goes on through the queue",
};

type Asked = Pick<
  RouteInput<string, unknown, unknown>,
  "caller" | "context" | "headers" | "waiting" | "audit"
>;

/** Requests, one by one and by the thousand, and what became of them. */
export function reconcileRoutes(access: QueueAccess, desk: QueueDesk): Route[] {
  return [
    route({
      id: "createReconcile",
      method: "post",
      path: "/v1/reconciles",
      summary: "Request a reconcile; with `Prefer: wait=20` the answer waits for its end",
      role: "operator",
      body: createReconcileSchema,
      maxBodyKiB: MAX_BODY_KIB,
      answer: acceptedReconcileSchema,
      status: 202,
      headers: PREFER,
      problems: ["unknown_controller", "queue_full"],
      handle: ({ body, ...asked }) => requestOne(access, body, asked),
    }),
    route({
      id: "listReconciles",
      method: "get",
      path: "/v1/reconciles",
      summary: "What is requested and has not ended, by key; with `phase` any keys",
      role: "viewer",
      query: keyQuerySchema,
      answer: keyListSchema,
      problems: ["unknown_controller"],
      async handle({ query, caller }) {
        const { items, ...rest } = await listKeys(desk, caller, query);
        if (query.phase !== undefined) return { items, ...rest };
        return { items: items.filter(({ phase }) => phase !== "idle"), ...rest };
      },
    }),
    route({
      id: "createReconciles",
      method: "post",
      path: "/v1/reconciles/batch",
      summary: "Up to 1,000 requests with a result each",
      role: "operator",
      body: createReconcilesSchema,
      maxBodyKiB: MAX_BATCH_KIB,
      answer: reconcileResultsSchema,
      async handle({ body: { items }, caller, context, audit }) {
        const trigger = triggerOf(caller, context);
        const answer = await requestBatch(access, items, {
          trigger,
          check: (item) => demand(caller, placeNamed(item)),
        });
        for (const [index, item] of items.entries()) {
          if (!("error" in (answer.items[index] ?? { error: 0 }))) audit(noteOf(item));
        }
        return answer;
      },
    }),
    route({
      id: "getReconcile",
      method: "get",
      path: "/v1/reconciles/{id}",
      summary: "What became of a request; `wait` or `Prefer: wait=20` waits for its end",
      role: "viewer",
      query: waitQuerySchema,
      headers: PREFER,
      answer: reconcileStateSchema,
      problems: ["not_found"],
      async handle({ params: { id }, query: { wait }, caller, context, waiting }) {
        const key = keyOfRequest(id);
        demand(caller, placeOf(key));
        const { queue } = await access.find(key.cluster, key.controller);
        const waitMs = wait ?? preferredWaitMs(context);
        return await waitForEnd(queue, id, { waitMs, signal: waiting() });
      },
    }),
    route({
      id: "cancelReconcile",
      method: "post",
      path: "/v1/reconciles/{id}/cancel",
      summary: "Withdraw one request; what others requested goes on",
      role: "operator",
      isOperatorAction: true,
      body: operatorActionSchema,
      answer: cancelResponseSchema,
      problems: ["not_found", "unknown_controller"],
      async handle({ params: { id }, body, caller, audit }) {
        const key = keyOfRequest(id);
        demand(caller, placeOf(key));
        const answer = await desk.cancel(id, body);
        audit(
          { action: "cancel", ...placeOf(key), name: key.name, filter: id, reason: body.reason },
          body.by,
        );
        return answer;
      },
    }),
  ];
}

/** Requests one object, and waits for the end of it when the caller prefers that. */
export async function requestOne(
  access: QueueAccess,
  body: CreateReconcile,
  { caller, context, headers, waiting, audit }: Asked,
): Promise<AcceptedReconcile | Response> {
  demand(caller, placeNamed(body));
  const trigger = triggerOf(caller, context, body.reason);
  const { accepted, queue } = await access.request(
    body.cluster,
    body.controller,
    async (found) => ({
      accepted: await found.queue.request(keyFor(found.announced, body), trigger, {
        class: "interactive",
      }),
      queue: found.queue,
    }),
  );
  audit(noteOf(body));
  const { id, key, coalesced } = accepted;
  headers["location"] = `/v1/reconciles/${encodeURIComponent(id)}`;
  const waitMs = preferredWaitMs(context);
  if (waitMs === 0) return { id, key, coalesced };
  headers["preference-applied"] = `wait=${waitMs / 1_000}`;
  const state = await waitForEnd(queue, id, { waitMs, signal: waiting() });
  if (state.phase !== "finished") return { id, key, coalesced };
  return jsonResponse({ id, key, coalesced, state } satisfies AcceptedReconcile, 200, headers);
}

/** Requests are counted by controller and namespace; who asked for which object stands with its attempts. */
function noteOf({ cluster, controller, namespace }: CreateReconcile) {
  const place = { cluster, controller, namespace: namespaceSegment(namespace) };
  return { action: "reconcile", ...place, count: 1 } as const;
}

/** The author is the token's name; the caller's trace goes on through the queue, also where this process traces nothing. */
function triggerOf(caller: Caller, { req }: Context, reason?: string): Trigger {
  const parent = parseTraceparent(req.header("traceparent") ?? "");
  return {
    kind: caller.via === "process" ? "cli" : "http",
    by: caller.via === "local" ? "http" : caller.name,
    ...defined({ reason }),
    ...(parent === undefined ? {} : { traceparent: formatTraceparent(parent) }),
  };
}
