import {
  defined,
  getOwn,
  isJsonObject,
  parseJson,
  resourceId,
  type CallVerb,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import {
  KubeApiError,
  type ErrorRef,
  type ErrorTrait,
  type StatusCause,
} from "./kube-api-error.ts";

/** An error response of the API server, or of a proxy in front of it. */
export interface FailedAnswer {
  readonly status: number;
  readonly body: string;
  /** The `Retry-After` header. */
  readonly retryAfter?: string | undefined;
  /** Absent if the call was made by other code. */
  readonly verb?: CallVerb | undefined;
  readonly ref?: ErrorRef | undefined;
  /** The response may quote secret data; its text must be dropped. */
  readonly sensitive: boolean;
}

/** Longest message kept. A 422 quotes the whole object, which may exceed a megabyte. */
const MAX_MESSAGE = 2_000;

const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  406: "NotAcceptable",
  409: "Conflict",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** Creates the error for any body: a Status object, a proxy's plain text, or nothing. */
export function parseApiError(answer: FailedAnswer): KubeApiError {
  const status = parseStatus(answer.body);
  return status === undefined ? withoutStatus(answer) : fromStatus(status, answer);
}

/** Creates the error for a Status object; inside a watch it comes without an HTTP response of its own. */
export function fromStatus(
  status: JsonObject,
  answer: Omit<FailedAnswer, "body" | "status"> & { readonly status?: number },
): KubeApiError {
  const { causes: rawCauses, ...details } = objectOf(status["details"]);
  const wholeMessage = text(status["message"]);
  const unknown = unknownFields(wholeMessage);
  const given = Array.isArray(rawCauses) ? rawCauses.map(toCause) : [];
  const causes = unknown?.causes ?? given;
  const message = unknown?.message ?? wholeMessage;
  const code = typeof status["code"] === "number" ? status["code"] : (answer.status ?? 500);
  const reason = text(status["reason"]);
  const suggested = details["retryAfterSeconds"];
  return build(answer, {
    status: code,
    reason,
    causes,
    details,
    message,
    retryAfterMs:
      retryAfterMs(answer.retryAfter) ??
      (typeof suggested === "number" && suggested > 0 ? suggested * 1_000 : undefined),
  });
}

const STRICT = /strict decoding error: (.*)$/s;
const UNKNOWN_FIELD = /(?:unknown|duplicate) field "((?:[^"\\]|\\.)*)"/g;

/** The fields that strict field validation rejects. The server's text quotes the whole object before them. */
function unknownFields(
  message: string,
): { readonly message: string; readonly causes: readonly StatusCause[] } | undefined {
  const [, problems = ""] = STRICT.exec(message) ?? [];
  const causes = [...problems.matchAll(UNKNOWN_FIELD)].map(([problem, field = ""]) => ({
    type: "FieldValueInvalid",
    message: problem,
    field,
  }));
  if (causes.length === 0) return undefined;
  return { message: `${problems}; correct the field, or add it to the schema of the kind`, causes };
}

function withoutStatus(answer: FailedAnswer): KubeApiError {
  const { status, body, verb } = answer;
  const reason =
    status === 409 && verb === "create"
      ? "AlreadyExists"
      : (REASONS[status] ?? (status >= 500 ? "InternalError" : ""));
  const message = body.trim();
  return build(answer, {
    status,
    reason,
    // The mark that client-go uses to distinguish a proxy's text from the API server's.
    causes: [{ type: "UnexpectedServerResponse", message, field: "" }],
    details: {},
    message,
    retryAfterMs: retryAfterMs(answer.retryAfter),
  });
}

interface ErrorParts {
  readonly status: number;
  readonly reason: string;
  readonly causes: readonly StatusCause[];
  readonly details: JsonObject;
  readonly message: string;
  readonly retryAfterMs: number | undefined;
}

/**
 * The only place where text of an API server becomes text of ours (P12). For sensitive kinds, only the code, the
 * reason, and the types and field paths of the causes are kept.
 */
function build(
  { verb, ref, sensitive }: Pick<FailedAnswer, "verb" | "ref" | "sensitive">,
  parts: ErrorParts,
): KubeApiError {
  const { status, reason, retryAfterMs: delayMs } = parts;
  const trait = traitOf(parts) ?? (status === 429 && isAggregated(ref) ? "extension" : undefined);
  const causes = sensitive
    ? parts.causes.map(({ type, field }) => ({ type, field: fieldPath(field), message: "" }))
    : parts.causes.map((cause) => ({ ...cause, message: cut(cause.message) }));
  return new KubeApiError(describe({ ...parts, causes }, { verb, ref, sensitive }), {
    status,
    reason,
    causes,
    details: sensitive ? safeDetails(parts.details) : parts.details,
    ...defined({ verb, trait, ref, retryAfterMs: delayMs }),
  });
}

/** The metrics APIs are always served behind the aggregator; their load is not that of the API server. */
function isAggregated(ref: ErrorRef | undefined): boolean {
  return ref !== undefined && /(?:^|\.)metrics\.k8s\.io$/.test(ref.group);
}

function describe(
  { status, reason, message, causes }: ErrorParts,
  { verb, ref, sensitive }: Pick<FailedAnswer, "verb" | "ref" | "sensitive">,
): string {
  const call = verb === undefined ? formatRef(ref) : `${verb} ${formatRef(ref)}`;
  const what = `${call}: ${status}${reason === "" ? "" : ` ${reason}`}`;
  if (!sensitive) return message === "" ? what : `${what}: ${cut(message)}`;
  const fields = [...new Set(causes.map(({ field }) => field))].filter((field) => field !== "");
  return fields.length === 0 ? what : `${what} (${fields.join(", ")})`;
}

function formatRef(ref: ErrorRef | undefined): string {
  if (ref === undefined) return "call";
  const type = resourceId(ref);
  const path = [ref.namespace, ref.name].filter((part) => part !== undefined).join("/");
  const target = path === "" ? type : `${type} ${path}`;
  return ref.cluster === undefined ? target : `${target} in cluster "${ref.cluster}"`;
}

function traitOf({ status, reason, message, causes }: ErrorParts): ErrorTrait | undefined {
  if (
    causes.some(({ type }) => type === "ResourceVersionTooLarge") ||
    message.includes("Too large resource version")
  ) {
    return "resourceVersionTooLarge";
  }
  if (status === 403 && message.includes("exceeded quota")) return "quotaExceeded";
  if (status === 403 && NOT_PERMITTED.test(message)) return "notPermitted";
  if (status >= 500 && EXTENSION.test(message)) return "extension";
  if (status === 429) {
    if (causes.some(({ type }) => type === "DisruptionBudget")) return "disruptionBudget";
    if (message.includes("storage is (re)initializing")) return "cacheNotReady";
  }
  if (reason === "Conflict" && REPLACED.test(message)) return "replaced";
  return undefined;
}

/** The text of the authorizer. */
const NOT_PERMITTED = /\bcannot \w+ (?:resource "|path ")/;

/** Texts of admission and conversion webhooks, and of the aggregator about a service behind it. */
const EXTENSION =
  /failed calling webhook|conversion webhook for|error trying to reach service|^service unavailable$/;

/** PUT, storage, DELETE and apply use different texts. */
const REPLACED = /UID in (?:the )?precondition|StorageError: invalid object|uid mismatch/;

function parseStatus(body: string): JsonObject | undefined {
  if (!body.trimStart().startsWith("{")) return undefined;
  let value: JsonValue;
  try {
    value = parseJson(body);
  } catch (error) {
    // A truncated document is treated as text, which goes into the message.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  return isJsonObject(value) && value["kind"] === "Status" ? value : undefined;
}

function toCause(value: JsonValue): StatusCause {
  const cause = objectOf(value);
  return {
    type: text(cause["reason"]),
    message: text(cause["message"]),
    field: text(cause["field"]),
  };
}

function safeDetails(details: JsonObject): JsonObject {
  const safe: JsonObject = {};
  for (const key of ["name", "group", "kind", "uid", "retryAfterSeconds"]) {
    const value = getOwn(details, key);
    if (value !== undefined) safe[key] = value;
  }
  return safe;
}

/**
 * A field path may quote the content of a set or map, as in `finalizers[0]` or `data[pass word]`; a long one quotes
 * more.
 */
function fieldPath(field: string): string {
  return field.length <= 200 ? field : `${field.slice(0, 200)}…`;
}

/** Accepts only whole seconds, as in client-go; a date would need synchronized clocks. */
function retryAfterMs(header: string | undefined): number | undefined {
  return header !== undefined && /^\d+$/.test(header.trim()) ? Number(header) * 1_000 : undefined;
}

function cut(message: string): string {
  return message.length <= MAX_MESSAGE ? message : `${message.slice(0, MAX_MESSAGE)}…`;
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

function text(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}
