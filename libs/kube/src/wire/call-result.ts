import { defined, isKonvergeError, type CallResult, type FaultScope } from "@konverge/core";
import type { ApiCall } from "../contract/api-call.ts";
import type { KubeApiError } from "../errors/kube-api-error.ts";
import { parseApiError } from "../errors/parse-api-error.ts";
import type { HttpAnswer } from "./http-exchange.ts";

/** The error of a response; undefined for a success. */
export function errorOf(
  call: ApiCall,
  { status, headers, body }: HttpAnswer,
): KubeApiError | undefined {
  if (status >= 200 && status < 300) return undefined;
  const retryAfter = headers["retry-after"];
  return parseApiError({
    status,
    body,
    retryAfter: typeof retryAfter === "string" ? retryAfter : undefined,
    verb: call.verb,
    ref: call.ref,
    sensitive: call.sensitive,
  });
}

/** The result of a response, as the gate counts it. */
export function responseOf(
  { status, headers }: HttpAnswer,
  error: KubeApiError | undefined,
): CallResult {
  if (error === undefined) return { kind: "response", status };
  const { retryAfterMs } = error;
  const concern = concernOf(error, headers);
  return {
    kind: "response",
    status,
    ...defined({ retryAfterMs, concern }),
  };
}

/** The scope of a fault that is not the API server's own. */
function concernOf(
  { status, trait }: KubeApiError,
  headers: HttpAnswer["headers"],
): FaultScope | undefined {
  switch (trait) {
    case "extension":
      return "part";
    case "disruptionBudget":
      return "object";
    case "resourceVersionTooLarge":
    case "cacheNotReady":
      return "stale";
    case "replaced":
    case "quotaExceeded":
    case undefined:
      break;
  }
  // A replica that shuts down asks its clients to repeat the call over a new connection.
  return status === 429 && headers["connection"] === "close" ? "connection" : undefined;
}

/** The result of a call without a response. */
export function failureOf(error: unknown, signal: AbortSignal | undefined): CallResult {
  if (signal?.aborted === true) return { kind: "aborted" };
  if (isKonvergeError(error) && error.code === "kube_timeout") return { kind: "timeout" };
  if (isKonvergeError(error) && error.code === "cancelled") return { kind: "aborted" };
  return { kind: "network" };
}
