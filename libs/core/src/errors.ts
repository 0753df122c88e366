/** The meaning of an error code: one table for HTTP status, exit code and docs. */
interface ErrorEntry {
  readonly title: string;
  /** Status of the HTTP problem. */
  readonly httpStatus: number;
  /** Exit code of the command line (docs/cli.md): 1 failed, 2 usage, 3 not found, 4 conflict, 5 timed out, 6 unavailable, 7 unauthorized. */
  readonly exitCode: number;
  /** True if a retry cannot succeed. */
  readonly terminal: boolean;
}

export type ErrorCode =
  | "api_unreachable"
  | "approval_stale"
  | "attempt_ended"
  | "body_too_large"
  | "cancelled"
  | "cluster_mismatch"
  | "codec_failed"
  | "codec_missing"
  | "count_mismatch"
  | "crd_mismatch"
  | "deferred"
  | "demo_failed"
  | "duplicate_cluster"
  | "field_conflict"
  | "forbidden"
  | "format_mismatch"
  | "heartbeat_timeout"
  | "identity_unavailable"
  | "idempotency_in_flight"
  | "idempotency_mismatch"
  | "inbound_closed"
  | "input_mismatch"
  | "internal"
  | "invalid_body"
  | "invalid_config"
  | "invalid_draft"
  | "invalid_key"
  | "invalid_owner"
  | "invalid_request"
  | "invalid_result"
  | "invalid_throw"
  | "invalid_workflow"
  | "kind_not_open"
  | "kube_api"
  | "kube_timeout"
  | "kube_unreachable"
  | "list_expired"
  | "method_not_allowed"
  | "mutation_mismatch"
  | "mutation_not_waiting"
  | "nested_mutate"
  | "not_found"
  | "not_plannable"
  | "not_recorded"
  | "object_deleted"
  | "object_exists"
  | "object_failed"
  | "object_replaced"
  | "outcome_unknown"
  | "queue_full"
  | "rate_limited"
  | "redis_unavailable"
  | "redis_unsupported"
  | "route_not_found"
  | "run_active"
  | "run_compensated"
  | "run_ended"
  | "run_exists"
  | "shards_mismatch"
  | "signals_full"
  | "step_failed"
  | "superseded"
  | "terminal"
  | "timed_out"
  | "unauthorized"
  | "unexpected_response"
  | "unknown_controller"
  | "unsupported_media_type"
  | "wait_timeout";

const entry = (
  title: string,
  httpStatus: number,
  exitCode: number,
  terminal = false,
): ErrorEntry => ({ title, httpStatus, exitCode, terminal });

/** Every error code of Konverge. docs/errors.md has an anchor for each. */
export const ERRORS: Readonly<Record<ErrorCode, ErrorEntry>> = {
  api_unreachable: entry("The HTTP API cannot be reached", 503, 6),
  attempt_ended: entry("The attempt has ended; its API access is revoked", 409, 4),
  body_too_large: entry("The request body is too large", 413, 2, true),
  cancelled: entry("Cancelled", 499, 1),
  cluster_mismatch: entry("The name belongs to another cluster in this Redis", 409, 2, true),
  codec_failed: entry("The codec of the workflows failed", 503, 6),
  codec_missing: entry("A value needs a codec that this process does not have", 422, 2),
  count_mismatch: entry("The number of matching runs differs", 409, 4, true),
  crd_mismatch: entry("The cluster does not serve the resource as defined", 409, 2, true),
  deferred: entry("Deferred to protect the API server", 503, 6),
  demo_failed: entry("The demo failed", 500, 1, true),
  duplicate_cluster: entry("The cluster is served under another name", 409, 2, true),
  approval_stale: entry("The plan is not the one that waits for an approval", 409, 4, false),
  field_conflict: entry("Other field managers own the applied fields", 409, 4, true),
  forbidden: entry("The token lacks the required role or scope", 403, 7, true),
  format_mismatch: entry("The data in Redis has a format of another version", 409, 2, true),
  heartbeat_timeout: entry("The step sent no heartbeat in time", 504, 5),
  idempotency_in_flight: entry("A request with this key is in progress", 409, 4),
  idempotency_mismatch: entry("The key was used with another request", 422, 2, true),
  identity_unavailable: entry("The identity or rights of the caller cannot be checked", 503, 6),
  inbound_closed: entry("The HTTP API has no secret for the inbound source", 503, 2),
  input_mismatch: entry("A run with this ID has another input", 409, 4, true),
  internal: entry("Internal error of Konverge", 500, 1),
  invalid_body: entry("The body is not valid JSON", 400, 2, true),
  invalid_config: entry("The configuration is not valid", 500, 2, true),
  invalid_draft: entry("The draft has a change that cannot be written", 422, 1, true),
  invalid_key: entry("The object key is not valid", 422, 2, true),
  invalid_owner: entry("The owner reference cannot be set", 422, 1, true),
  invalid_request: entry("The request is not valid", 422, 2, true),
  invalid_result: entry("The handler returned an invalid value", 500, 1, true),
  invalid_throw: entry("The handler threw a value that is not an Error", 500, 1, true),
  invalid_workflow: entry("The workflow uses a verb incorrectly", 500, 1, true),
  kind_not_open: entry("The configuration does not open the kind for mutations", 403, 7, true),
  kube_api: entry("The API server rejected the call", 502, 1),
  kube_timeout: entry("The API server did not respond in time", 504, 6),
  kube_unreachable: entry("The API server cannot be reached", 503, 6),
  list_expired: entry("A list was read for too long and has expired", 500, 1),
  method_not_allowed: entry("The route does not support this method", 405, 2, true),
  mutation_mismatch: entry("A mutation with this ID has other content", 409, 4, true),
  mutation_not_waiting: entry("The mutation no longer waits", 409, 4, true),
  nested_mutate: entry("The function of a mutate called mutate", 500, 1, true),
  not_found: entry("Not found", 404, 3, true),
  not_plannable: entry("The call cannot be part of a plan", 422, 1, true),
  not_recorded: entry("The recording of the attempt does not hold this", 422, 4, true),
  object_deleted: entry("The awaited object was deleted", 409, 4, true),
  object_exists: entry("The object already exists", 409, 4, true),
  object_failed: entry("The awaited object reports a failure", 409, 1, true),
  object_replaced: entry("The object was deleted and recreated", 409, 4),
  outcome_unknown: entry("The outcome of the step is unknown", 500, 1, true),
  queue_full: entry("Too many keys wait; retry later", 503, 6),
  rate_limited: entry("Too many requests; retry later", 429, 6),
  redis_unavailable: entry("Redis is unavailable", 503, 6),
  redis_unsupported: entry("Unsupported Redis version or configuration", 500, 2, true),
  route_not_found: entry("No such route", 404, 3, true),
  run_active: entry("The run is still active", 409, 4),
  run_compensated: entry("The run has undone its steps", 409, 4, true),
  run_ended: entry("The run has ended", 409, 4, true),
  run_exists: entry("Another active run has this key", 409, 4),
  shards_mismatch: entry("The number of shards differs from the one in Redis", 409, 2, true),
  signals_full: entry("The run buffers too many signals", 409, 4),
  step_failed: entry("A workflow step failed permanently", 500, 1, true),
  superseded: entry("Another writer changed the object's spec", 409, 4, true),
  terminal: entry("The handler threw a TerminalError", 500, 1, true),
  timed_out: entry("The attempt exceeded its timeout", 504, 5),
  unauthorized: entry("A valid token is required", 401, 7, true),
  unexpected_response: entry("The response is not from a Konverge API", 502, 6),
  unknown_controller: entry("Unknown controller", 404, 3, true),
  unsupported_media_type: entry("The body must be application/json", 415, 2, true),
  wait_timeout: entry("The wait timed out; the work continues", 504, 5),
};

/** Two copies of this package in one process must recognize each other's errors, which `instanceof` cannot do. */
const BRAND: symbol = Symbol.for("konverge.error");

export interface KonvergeErrorOptions {
  readonly cause?: unknown;
  /** Minimum delay before a retry, in ms. */
  readonly retryAfterMs?: number;
  /** Problems by JSON pointer, each with a suggested fix. */
  readonly issues?: readonly ErrorIssue[];
}

export interface ErrorIssue {
  /** JSON pointer into the input, for example `/spec/replicas`; empty for the whole. */
  readonly pointer: string;
  readonly detail: string;
}

/** Base class of all Konverge errors. `code` is stable; the message is for display. */
export class KonvergeError extends Error {
  override readonly name: string = "KonvergeError";
  readonly code: ErrorCode;
  readonly retryAfterMs: number | undefined;
  readonly issues: readonly ErrorIssue[];

  constructor(code: ErrorCode, message: string, options: KonvergeErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    Object.defineProperty(this, BRAND, { value: true });
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
    this.issues = options.issues ?? [];
  }

  /** True if a retry cannot succeed. */
  get terminal(): boolean {
    return ERRORS[this.code].terminal;
  }
}

/** Returns an error with all problems of a configuration. Each detail has the key and a suggested fix. */
export function invalidConfig(
  issues: readonly ErrorIssue[],
  what = "the configuration is",
): KonvergeError {
  return new KonvergeError(
    "invalid_config",
    `${what} not valid:\n${issues.map(({ detail }) => `  ${detail}`).join("\n")}`,
    { issues },
  );
}

/** Thrown by a handler to stop retries: the key is dead-lettered until its generation or uid changes. */
export class TerminalError extends KonvergeError {
  override readonly name = "TerminalError";
  constructor(message: string, options: KonvergeErrorOptions = {}) {
    super("terminal", message, options);
  }
}

/** Returns true for a Konverge error, also of another copy of this package. */
export function isKonvergeError(error: unknown): error is KonvergeError {
  return typeof error === "object" && error !== null && BRAND in error;
}

/** Converts a thrown value to an Error. */
export function ensureError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  if (typeof thrown === "string") return new Error(thrown, { cause: thrown });
  try {
    return new Error(`thrown: ${String(thrown)}`, { cause: thrown });
  } catch {
    // Some values have no text: an object without a prototype, a failing toString.
    return new Error("thrown: an object without text", { cause: thrown });
  }
}

/** Walks `error` and its causes (at most 16) and returns the first that `matches`. */
export function findCause<T>(
  error: unknown,
  matches: (candidate: unknown) => candidate is T,
): T | undefined {
  let candidate = error;
  for (let depth = 0; depth < 16 && candidate !== undefined && candidate !== null; depth++) {
    if (matches(candidate)) return candidate;
    candidate = typeof candidate === "object" && "cause" in candidate ? candidate.cause : undefined;
  }
  return undefined;
}
