import type { AcceptedReconcile, CreateReconcile } from "@konverge/contracts";
import { defined, namespaceSegment, type Trigger } from "@konverge/core";
import type { Context } from "hono";
import { classFor, demand, type Caller } from "../access/caller.ts";
import { jsonResponse } from "../http/json-response.ts";
import type { RouteInput } from "../http/route.ts";
import { traceparentOf } from "../http/traceparent-of.ts";
import { placeNamed } from "./place-of.ts";
import { keyFor, type QueueAccess } from "./queue-access.ts";
import { preferredWaitMs, waitForEnd } from "./wait-for-end.ts";

/** The headers of routes that can wait. */
export const PREFER: Readonly<Record<string, string>> = {
  prefer: "wait=20 waits up to 20 s (maximum 60) for the end",
  traceparent: "W3C trace context, passed on through the queue",
};

type Asked = Pick<
  RouteInput<string, unknown, unknown>,
  "caller" | "context" | "headers" | "openWait" | "audit"
>;

/** Requests one object, and waits for the end if the caller prefers it. */
export async function requestOne(
  access: QueueAccess,
  body: CreateReconcile,
  { caller, context, headers, openWait, audit }: Asked,
): Promise<AcceptedReconcile | Response> {
  demand(caller, placeNamed(body));
  const requestClass = classFor(caller, body.class, "interactive");
  const waitMs = preferredWaitMs(context);
  using wait = openWait(waitMs);
  const trigger = triggerOf(caller, context, body.reason);
  const { accepted, queue } = await access.request(
    body.cluster,
    body.controller,
    async (found) => ({
      accepted: await found.queue.request(keyFor(found.announced, body), trigger, {
        class: requestClass,
      }),
      queue: found.queue,
    }),
  );
  audit(noteOf(body));
  const { id, key, coalesced } = accepted;
  headers["location"] = `/v1/reconciles/${encodeURIComponent(id)}`;
  if (waitMs === 0) return { id, key, coalesced };
  headers["preference-applied"] = `wait=${waitMs / 1_000}`;
  const state = await waitForEnd(queue, id, wait);
  if (state.phase !== "finished") return { id, key, coalesced };
  return jsonResponse({ id, key, coalesced, state } satisfies AcceptedReconcile, 200, headers);
}

/** Requests are counted by controller and namespace. The attempts of an object name its requesters. */
export function noteOf({ cluster, controller, namespace }: CreateReconcile) {
  const place = { cluster, controller, namespace: namespaceSegment(namespace) };
  return { action: "reconcile", ...place, count: 1 } as const;
}

/** The author is the name of the token. */
export function triggerOf(caller: Caller, context: Context, reason?: string): Trigger {
  return {
    kind: caller.via === "process" ? "cli" : "http",
    by: caller.via === "local" ? "http" : caller.name,
    ...defined({ reason, traceparent: traceparentOf(context) }),
  };
}
