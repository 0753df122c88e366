import { defined, findCause, isKonvergeError, KonvergeError, type ErrorCode } from "@konverge/core";
import { isKubeApiError, KubeApiError, type AttemptSecrets } from "@konverge/kube";

/** Errors whose whole text is ours: they name objects, fields and times, never values. */
const OWN_TEXT: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "attempt_ended",
  "cancelled",
  "deferred",
  "invalid_draft",
  "invalid_result",
  "kube_timeout",
  "kube_unreachable",
  "object_replaced",
  "timed_out",
]);
const MAX_MESSAGE = 1_000;

export interface RedactErrorOptions {
  readonly secrets: AttemptSecrets;
  /** The reconciled kind when it is sensitive: then no text but ours is kept, since the handler had nothing else in hand. */
  readonly sensitiveKind?: string | undefined;
  readonly isSensitive: (type: { readonly group: string; readonly resource: string }) => boolean;
}

/** The error as it may leave the attempt (P12): into Redis, logs, traces and pages. Its message, name and code are short. */
export function redactError(error: Error, options: RedactErrorOptions): Error {
  const { secrets, sensitiveKind } = options;
  const name = wordOf(error.name, secrets) ?? "Error";
  const code = "code" in error ? wordOf(error.code, secrets) : undefined;
  if (sensitiveKind !== undefined) {
    const message = ownText(error, options) ?? `withheld: a ${sensitiveKind} is sensitive`;
    return rebuilt(error, { message, name, code });
  }
  const message = cut(secrets.scrub(error.message));
  const isFit =
    message === error.message && name === error.name && (!("code" in error) || code === error.code);
  return isFit ? error : rebuilt(error, { message, name, code });
}

/** A name or a code, if it is one: whoever throws may write into them what he likes. */
function wordOf(value: unknown, secrets: AttemptSecrets): string | undefined {
  if (typeof value !== "string" || !/^[\w.-]{1,80}$/.test(value)) return undefined;
  return secrets.scrub(value) === value ? value : undefined;
}

function ownText(error: Error, { isSensitive }: RedactErrorOptions): string | undefined {
  const ours = findCause(error, isKonvergeError);
  if (ours === undefined) return undefined;
  if (OWN_TEXT.has(ours.code)) return cut(ours.message);
  if (!isKubeApiError(ours)) return undefined;
  // Of a sensitive kind it has been redacted where it was made; any other may quote what was copied into it.
  if (ours.ref !== undefined && isSensitive(ours.ref)) return cut(ours.message);
  return `${ours.verb ?? "call"} ${ours.ref?.resource ?? ""}: ${ours.status} ${ours.reason}`;
}

interface SafeWords {
  readonly message: string;
  readonly name: string;
  readonly code: string | undefined;
}

/** The same error in other words, and without causes that have theirs. */
function rebuilt(error: Error, { message, name, code }: SafeWords): Error {
  const ours = findCause(error, isKonvergeError);
  if (isKubeApiError(ours)) {
    const { status, reason, causes, retryAfterMs, ref, verb } = ours;
    return new KubeApiError(message, {
      status,
      reason,
      causes: causes.map(({ type, field }) => ({ type, field, message: "" })),
      ...defined({ retryAfterMs, ref, verb }),
    });
  }
  if (ours !== undefined) return new KonvergeError(ours.code, message);
  const safe = error instanceof TypeError ? new TypeError(message) : new Error(message);
  return Object.assign(safe, { name }, code === undefined ? {} : { code });
}

function cut(message: string): string {
  return message.length > MAX_MESSAGE
    ? `${message.slice(0, MAX_MESSAGE)}... (${message.length} characters)`
    : message;
}
