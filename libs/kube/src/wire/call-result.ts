import {
  defined,
  ensureError,
  isKonvergeError,
  KonvergeError,
  parseJson,
  type CallResult,
  type FaultScope,
  type JsonValue,
} from "@konverge/core";
import type { ApiCall } from "../contract/api-call.ts";
import type { KubeApiError } from "../errors/kube-api-error.ts";
import { parseApiError } from "../errors/parse-api-error.ts";
import type { HttpAnswer } from "../contract/http-answer.ts";

/** The content of a response. */
export type Content =
  /** `value` is undefined if the content is not JSON, which only a call with `anyContent` accepts. */
  | { readonly kind: "success"; readonly value: JsonValue | undefined }
  | { readonly kind: "error"; readonly error: KubeApiError }
  /** Something else responded, for example a login page or a captive proxy. */
  | { readonly kind: "foreign"; readonly error: KonvergeError };

/** What the content of a response depends on. */
export type AnsweredCall = Pick<ApiCall, "verb" | "path" | "sensitive" | "ref" | "anyContent">;

export function contentOf(call: AnsweredCall, answer: HttpAnswer): Content {
  const { status } = answer;
  const type = contentTypeOf(answer);
  const isRedirect = status >= 300 && status < 400;
  if (call.anyContent !== true && (isRedirect || type.startsWith("text/html"))) {
    return foreign(call, answer, isRedirect ? locationOf(answer) : "HTML");
  }
  const error = errorOf(call, answer);
  if (error !== undefined) return { kind: "error", error };
  if (!type.startsWith("application/json")) {
    if (call.anyContent === true) return { kind: "success", value: undefined };
    return foreign(call, answer, "no JSON");
  }
  try {
    return { kind: "success", value: parseJson(answer.body) };
  } catch (thrown) {
    return foreign(call, answer, "invalid JSON", ensureError(thrown));
  }
}

function foreign(call: AnsweredCall, answer: HttpAnswer, what: string, cause?: Error): Content {
  const { verb, path, sensitive } = call;
  const [place = ""] = path.split("?", 1);
  const start = sensitive ? "" : `: ${JSON.stringify(answer.body.slice(0, 80))}`;
  const error = new KonvergeError(
    "kube_unreachable",
    `${verb} ${place} returned ${answer.status} with ${what}${start}; check the server URL, and proxies in between`,
    sensitive ? {} : defined({ cause }),
  );
  return { kind: "foreign", error };
}

function contentTypeOf({ headers }: Pick<HttpAnswer, "headers">): string {
  const type = headers["content-type"];
  return typeof type === "string" ? type : "";
}

function locationOf({ headers }: HttpAnswer): string {
  const location = headers["location"];
  return `a redirect to ${typeof location === "string" ? location : "nowhere"}`;
}

/** The error of a response; undefined for a success. */
function errorOf(
  call: AnsweredCall,
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
    case "notPermitted":
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
