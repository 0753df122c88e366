import { findCause, isJsonObject, type JsonValue } from "@konverge/core";
import { isKubeApiError, type KubeApiError } from "./kube-api-error.ts";
import { parseApiError } from "./parse-api-error.ts";

/** The public fields of client-node's `ApiException`. There may be several copies of the class in a process. */
interface ApiException extends Error {
  readonly code: number;
  /** The text of the response; undefined for a 401. */
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** The errors of responses that were given to client-node, by their headers, which the exception refers to. */
const answered = new WeakMap<object, KubeApiError>();
/** The errors of exceptions whose calls did not pass this client. */
const parsed = new WeakMap<object, KubeApiError>();

/** Remembers the error of a response whose headers are given to client-node. */
export function noteApiError(headers: object, error: KubeApiError): void {
  answered.set(headers, error);
}

/** Returns the first API error in `error` and its causes. Also converts client-node's `ApiException`. */
export function findApiError(error: unknown): KubeApiError | undefined {
  const found = findCause(error, isApiFailure);
  return found === undefined || isKubeApiError(found) ? found : fromException(found);
}

/** Returns the API error for client-node's `ApiException`, with its stack; undefined for any other value. */
export function convertApiException(error: unknown): KubeApiError | undefined {
  if (!isApiException(error)) return undefined;
  const converted = fromException(error);
  const { message, stack = "" } = error;
  const start = stack.indexOf(message);
  // The message quotes the response, which may hold a secret (P12).
  const frames = start === -1 ? "" : stack.slice(start + message.length);
  return Object.assign(converted, { stack: `${converted.name}: ${converted.message}${frames}` });
}

function isApiFailure(error: unknown): error is KubeApiError | ApiException {
  return isKubeApiError(error) || isApiException(error);
}

function isApiException(error: unknown): error is ApiException {
  if (!(error instanceof Error) || !("code" in error) || !("headers" in error)) return false;
  const { code, headers } = error;
  return (
    typeof code === "number" && "body" in error && typeof headers === "object" && headers !== null
  );
}

function fromException(exception: ApiException): KubeApiError {
  const { code: status, body, headers } = exception;
  const known = answered.get(headers) ?? parsed.get(exception);
  if (known !== undefined) return known;
  const text = typeof body === "string" ? body : (JSON.stringify(body) ?? "");
  const error = parseApiError({
    status,
    body: text,
    retryAfter: headers["retry-after"],
    sensitive: isAboutSecrets(text),
  });
  parsed.set(exception, error);
  return error;
}

/** The details of a Status name the resource in the field `kind`. */
function isAboutSecrets(body: string): boolean {
  try {
    const status = JSON.parse(body) as JsonValue;
    const details = isJsonObject(status) ? status["details"] : undefined;
    return isJsonObject(details) && details["kind"] === "secrets";
  } catch {
    // Not a Status.
    return false;
  }
}
