import {
  defined,
  findCause,
  isKonvergeError,
  KonvergeError,
  typeOfError,
  type ErrorCode,
} from "@konverge/core";
import { isKubeApiError, KubeApiError, type AttemptSecrets } from "@konverge/kube";

/** Errors with a text by Konverge, which contains objects, fields and times, never values. */
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
  /** The reconciled kind, if it is sensitive. Then only texts by Konverge are kept, since any other may quote the object. */
  readonly sensitiveKind?: string | undefined;
  readonly isSensitive: (type: { readonly group: string; readonly resource: string }) => boolean;
}

/** Redacts an error for Redis, logs, traces and pages (P12). Its message, name and code are short. */
export function redactError(error: Error, options: RedactErrorOptions): Error {
  const { secrets, sensitiveKind } = options;
  const name = wordOf(typeOfError(error), secrets) ?? "Error";
  const code = "code" in error ? wordOf(error.code, secrets) : undefined;
  if (sensitiveKind !== undefined) {
    const message = ownText(error, options) ?? `withheld: a ${sensitiveKind} is sensitive`;
    return rebuilt(error, { message, name, code });
  }
  const message = cut(secrets.scrub(error.message));
  const isFit =
    message === error.message &&
    isName(error.name, secrets) &&
    (!("code" in error) || code === error.code);
  return isFit ? error : rebuilt(error, { message, name, code });
}

function isName(name: unknown, secrets: AttemptSecrets): boolean {
  return wordOf(name, secrets) === name;
}

/** Accepts a name or code only if it has the form of one, since code that throws can set any text. */
function wordOf(value: unknown, secrets: AttemptSecrets): string | undefined {
  if (typeof value !== "string" || !/^[\w.-]{1,80}$/.test(value)) return undefined;
  return secrets.scrub(value) === value ? value : undefined;
}

function ownText(error: Error, { isSensitive }: RedactErrorOptions): string | undefined {
  const ours = findCause(error, isKonvergeError);
  if (ours === undefined) return undefined;
  if (OWN_TEXT.has(ours.code)) return cut(ours.message);
  if (!isKubeApiError(ours)) return undefined;
  // Messages about a sensitive kind are redacted at their source; others may quote copied values.
  if (ours.ref !== undefined && isSensitive(ours.ref)) return cut(ours.message);
  return `${ours.verb ?? "call"} ${ours.ref?.resource ?? ""}: ${ours.status} ${ours.reason}`;
}

interface SafeWords {
  readonly message: string;
  readonly name: string;
  readonly code: string | undefined;
}

/** The same error with another message, and without causes, which have their own. */
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
