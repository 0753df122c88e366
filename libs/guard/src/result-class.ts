import type { CallResult, CallVerb } from "@konverge/core";

/** What a call's end says about the server: `ok` it is well, `failed` it is not, `throttled` it has too much. */
export type ResultClass = "ok" | "failed" | "throttled" | "unauthorized" | "neutral";

/** Longer than this is slow, in ms: Kubernetes' service level objective for single objects and for lists. */
const SLOW_MS = 1_000;
const SLOW_LIST_MS = 30_000;

/**
 * Sorts the ends of calls. A refusal (409, 404, 422, ...) is the answer of a healthy server; a broken webhook or
 * aggregated API is not the server's fault; what we gave up ourselves says nothing.
 */
export function classifyResult(result: CallResult): ResultClass {
  switch (result.kind) {
    case "aborted":
      return "neutral";
    case "network":
    case "timeout":
      return "failed";
    case "response":
      return classifyResponse(result);
  }
}

function classifyResponse({
  status,
  concern,
}: Extract<CallResult, { kind: "response" }>): ResultClass {
  switch (concern) {
    case "part":
    case "object":
      return "ok";
    case "stale":
    case "connection":
      return "neutral";
    case undefined:
      break;
  }
  if (status === 401) return "unauthorized";
  if (status === 429) return "throttled";
  return status >= 500 ? "failed" : "ok";
}

export function isSlow(verb: CallVerb, tookMs: number): boolean {
  if (verb === "watch") return false;
  return tookMs > (verb === "list" ? SLOW_LIST_MS : SLOW_MS);
}
