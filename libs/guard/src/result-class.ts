import type { CallResult, CallVerb } from "@konverge/core";

/** The evidence of a call's result about the server: healthy (`ok`), `failed`, overloaded (`throttled`), or none. */
export type ResultClass = "ok" | "failed" | "throttled" | "unauthorized" | "neutral";

/** Slow calls, in ms: Kubernetes' service level objectives for single objects and for lists. */
const SLOW_MS = 1_000;
const SLOW_LIST_MS = 30_000;

/**
 * Classifies the results of calls. A rejection (409, 404, 422, ...) is the response of a healthy server. A failing webhook or
 * aggregated API is not a failure of the server. An abort by the caller is no evidence.
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

/** Returns the cause of a failure as text for users; undefined if the call did not fail. */
export function failureText(result: CallResult): string | undefined {
  switch (result.kind) {
    case "aborted":
      return undefined;
    case "network":
      return "no connection";
    case "timeout":
      return "timeout";
    case "response":
      return result.status >= 500 || result.status === 429 ? `HTTP ${result.status}` : undefined;
  }
}

export function isSlow(verb: CallVerb, tookMs: number): boolean {
  if (verb === "watch") return false;
  return tookMs > (verb === "list" ? SLOW_LIST_MS : SLOW_MS);
}
