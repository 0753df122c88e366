import {
  createReconcileSchema,
  createReconcilesSchema,
  duration,
  orderSchema,
  type AcceptedReconcile,
  type ReconcileState,
} from "@konverge/contracts";
import { formatTraceparent, KonvergeError, parseTraceparent, sleepMs } from "@konverge/core";
import type { RequestState, WorkQueue } from "@konverge/queue";
import { Hono } from "hono";
import { pauseView } from "./key-item.ts";
import { limitBody } from "./limit-body.ts";
import { readJson } from "./read-json.ts";
import { keyFor, type QueueAccess } from "./queue-access.ts";
import { keyOfRequest, type QueueDesk } from "./queue-desk.ts";
import { requestBatch } from "./reconcile-batch.ts";

const MAX_BODY_KIB = 64;
const MAX_BATCH_KIB = 1_024;
const MAX_WAIT_MS = 60_000;
const POLL_MS = 100;

/** `POST /v1/reconciles`, `POST /v1/reconciles/batch`, `GET /v1/reconciles/{id}` and `POST /v1/reconciles/{id}/cancel`. */
export function reconcileRoutes(access: QueueAccess, desk: QueueDesk): Hono {
  const routes = new Hono();
  routes.post("/", limitBody(MAX_BODY_KIB), async (context) => {
    const body = await readJson(context.req, createReconcileSchema);
    const { queue, announced } = await access.find(body.cluster, body.controller);
    const key = keyFor(announced, body);
    const trigger = {
      kind: "http",
      by: "http",
      ...(body.reason === undefined ? {} : { reason: body.reason }),
      ...traceOf(context.req.header("traceparent")),
    } as const;
    const accepted = await queue.request(key, trigger, { class: "interactive" });
    const answer: AcceptedReconcile = {
      id: accepted.id,
      key: accepted.key,
      coalesced: accepted.coalesced,
    };
    context.header("location", `/v1/reconciles/${encodeURIComponent(accepted.id)}`);
    return context.json(answer, 202);
  });
  routes.post("/batch", limitBody(MAX_BATCH_KIB), async ({ req, json }) => {
    const { items } = await readJson(req, createReconcilesSchema);
    const trigger = { kind: "http", by: "http", ...traceOf(req.header("traceparent")) } as const;
    return json(await requestBatch(access, items, trigger));
  });
  routes.post("/:id/cancel", limitBody(MAX_BODY_KIB), async ({ req, json }) =>
    json(await desk.cancel(req.param("id"), await readJson(req, orderSchema))),
  );
  routes.get("/:id", async (context) => {
    const id = context.req.param("id");
    const waitMs = parseWait(context.req.query("wait"));
    const { cluster, controller } = keyOfRequest(id);
    const { queue } = await access.find(cluster, controller);
    const { paused, ...state } = await waitFor(queue, id, {
      waitMs,
      signal: context.req.raw.signal,
    });
    const answer: ReconcileState =
      paused === undefined ? state : { ...state, paused: pauseView(paused) };
    return context.json(answer);
  });
  return routes;
}

/** The caller's trace goes on through the queue, also where this process traces nothing itself. */
function traceOf(header: string | undefined): { readonly traceparent?: string } {
  const parent = header === undefined ? undefined : parseTraceparent(header);
  return parent === undefined ? {} : { traceparent: formatTraceparent(parent) };
}

/** Answers as soon as the request is finished, else what is known when the wait is over or the caller has gone. */
async function waitFor(
  queue: WorkQueue,
  id: string,
  { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal },
): Promise<RequestState> {
  const endMs = performance.now() + waitMs;
  for (;;) {
    const state = await queue.getRequest(id);
    const leftMs = endMs - performance.now();
    if (state.phase === "finished" || leftMs <= 0 || signal.aborted) return state;
    await sleepMs(Math.min(POLL_MS, leftMs));
  }
}

function parseWait(text: string | undefined): number {
  if (text === undefined) return 0;
  const parsed = duration.safeParse(text);
  if (parsed.success && parsed.data <= MAX_WAIT_MS) return parsed.data;
  const detail = `wait is "${text}"; write a duration up to 60s, such as 20s`;
  throw new KonvergeError("invalid_request", detail, { issues: [{ pointer: "/wait", detail }] });
}
