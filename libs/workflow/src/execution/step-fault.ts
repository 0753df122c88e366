import { findCause, isKonvergeError, type KonvergeError } from "@konverge/core";
import {
  isAlreadyExists,
  isFieldManagerConflict,
  isForbidden,
  isInapplicable,
  isInvalid,
  isKubeApiError,
  isNamespaceTerminating,
  isOptimisticConflict,
  isQuotaExceeded,
  isReplaced,
  suggestsDelayMs,
} from "@konverge/kube";

/** The effect of a body's error on its step. */
export type StepFault =
  /** A failed attempt. */
  | { readonly kind: "counted"; readonly retryAfterMs: number }
  /** Not caused by the step: retried without being counted. */
  | { readonly kind: "uncounted"; readonly retryAfterMs: number }
  /** A retry cannot succeed. */
  | { readonly kind: "final" };

/** Errors without a response of the API server, or from the guard. */
const UNANSWERED: ReadonlySet<string> = new Set(["deferred", "kube_timeout", "kube_unreachable"]);

/** Codes of errors by which a verb rejects a call before it has an effect. */
const REFUSALS: ReadonlySet<string> = new Set([
  "field_conflict",
  "invalid_config",
  "invalid_draft",
  "invalid_request",
  "not_found",
  "object_exists",
  "object_replaced",
]);

/** Returns true if a verb or the API server rejected a call, which then had no effect itself. Earlier calls may have had one. */
export function isRefused(error: Error): boolean {
  const isRefusal = (cause: unknown): cause is KonvergeError =>
    isKonvergeError(cause) &&
    (isKubeApiError(cause) ? cause.status >= 400 && cause.status < 500 : REFUSALS.has(cause.code));
  return findCause(error, isRefusal) !== undefined;
}

export function stepFaultOf(error: Error): StepFault {
  if (isKonvergeError(error) && (error.terminal || error.code === "object_replaced")) {
    return { kind: "final" };
  }
  const retryAfterMs = retryAfterOf(error);
  if (findCause(error, isUnanswered) !== undefined) return { kind: "uncounted", retryAfterMs };
  const answered = findCause(error, isKubeApiError);
  if (answered === undefined) return { kind: "counted", retryAfterMs };
  if (isFinal(error)) return { kind: "final" };
  const { status, trait } = answered;
  // A 500 that no webhook caused may be the object's fault: the API server returns it for an apply of an unknown field.
  const isServersSake =
    status === 429 || status > 500 || trait === "extension" || isOptimisticConflict(error);
  return { kind: isServersSake ? "uncounted" : "counted", retryAfterMs };
}

function isFinal(error: Error): boolean {
  if (isForbidden(error)) return !isQuotaExceeded(error) && !isNamespaceTerminating(error);
  if (isInvalid(error)) return !isInapplicable(error);
  return isFieldManagerConflict(error) || isAlreadyExists(error) || isReplaced(error);
}

function isUnanswered(error: unknown): error is KonvergeError {
  return isKonvergeError(error) && UNANSWERED.has(error.code);
}

function retryAfterOf(error: Error): number {
  const own = isKonvergeError(error) ? error.retryAfterMs : undefined;
  const unanswered = findCause(error, isUnanswered)?.retryAfterMs;
  return own ?? unanswered ?? suggestsDelayMs(error) ?? 0;
}
