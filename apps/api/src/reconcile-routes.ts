import {
  createReconcileSchema,
  duration,
  type AcceptedReconcile,
  type ReconcileState,
} from "@konverge/contracts";
import {
  formatTraceparent,
  KonvergeError,
  parseKey,
  parseTraceparent,
  sleepMs,
} from "@konverge/core";
import type { WorkQueue } from "@konverge/queue";
import { Hono } from "hono";
import { limitBody } from "./limit-body.ts";
import { readJson } from "./read-json.ts";
import { keyFor, type QueueAccess } from "./queue-access.ts";

const MAX_BODY_KIB = 64;
const MAX_WAIT_MS = 60_000;
const POLL_MS = 100;

/** `POST /v1/reconciles` and `GET /v1/reconciles/{id}`. */
export function reconcileRoutes(access: QueueAccess): Hono {
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
  routes.get("/:id", async (context) => {
    const id = context.req.param("id");
    const waitMs = parseWait(context.req.query("wait"));
    const { cluster, controller } = keyOfId(id);
    const { queue } = await access.find(cluster, controller);
    const state: ReconcileState = await waitFor(queue, id, {
      waitMs,
      signal: context.req.raw.signal,
    });
    return context.json(state);
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
): Promise<ReconcileState> {
  const endMs = performance.now() + waitMs;
  for (;;) {
    const state = await queue.getRequest(id);
    const leftMs = endMs - performance.now();
    if (state.phase === "finished" || leftMs <= 0 || signal.aborted) return state;
    await sleepMs(Math.min(POLL_MS, leftMs));
  }
}

function keyOfId(id: string) {
  const end = id.lastIndexOf("@");
  try {
    return parseKey(end === -1 ? id : id.slice(0, end));
  } catch (error) {
    throw new KonvergeError("not_found", `no request has the id "${id}"`, { cause: error });
  }
}

function parseWait(text: string | undefined): number {
  if (text === undefined) return 0;
  const parsed = duration.safeParse(text);
  if (parsed.success && parsed.data <= MAX_WAIT_MS) return parsed.data;
  const detail = `wait is "${text}"; write a duration up to 60s, such as 20s`;
  throw new KonvergeError("invalid_request", detail, { issues: [{ pointer: "/wait", detail }] });
}
