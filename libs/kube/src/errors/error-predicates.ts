import { findCause, isKonvergeError, type KonvergeError } from "@konverge/core";
import { findApiError } from "./api-exception.ts";

/**
 * Reasons that are conclusive; with any other, the HTTP status decides (apimachinery `api/errors`,
 * `ReasonAndCodeForError`).
 */
const KNOWN_REASONS: ReadonlySet<string> = new Set([
  "Unauthorized",
  "Forbidden",
  "NotFound",
  "AlreadyExists",
  "Conflict",
  "Gone",
  "Expired",
  "Invalid",
  "ServerTimeout",
  "StorageReadError",
  "InternalError",
  "Timeout",
  "TooManyRequests",
  "RequestEntityTooLarge",
  "BadRequest",
  "MethodNotAllowed",
  "NotAcceptable",
  "UnsupportedMediaType",
  "ServiceUnavailable",
]);

function byReason(error: unknown, reason: string): boolean {
  return findApiError(error)?.reason === reason;
}

/** Returns true if the reason is equal, or if it is inconclusive and the status is equal. */
function byReasonOrStatus(error: unknown, reason: string, status: number): boolean {
  const found = findApiError(error);
  if (found === undefined) return false;
  return found.reason === reason || (!KNOWN_REASONS.has(found.reason) && found.status === status);
}

function hasCause(error: unknown, type: string): boolean {
  return findApiError(error)?.causes.some((cause) => cause.type === type) ?? false;
}

/**
 * 409 `Conflict`: a stale version, a failed precondition, or a field that another manager owns. False for
 * {@link isAlreadyExists}, as in client-go. Check {@link isFieldManagerConflict} and {@link isReplaced} first, because a
 * retry helps with neither.
 */
export function isConflict(error: unknown): boolean {
  return byReasonOrStatus(error, "Conflict", 409);
}
/** 409 of server-side apply: another manager owns the field. Force, drop the field, or adopt the live value. */
export function isFieldManagerConflict(error: unknown): boolean {
  return isConflict(error) && hasCause(error, "FieldManagerConflict");
}
/** A stale version or precondition: read again, decide again. */
export function isOptimisticConflict(error: unknown): boolean {
  return isConflict(error) && !isFieldManagerConflict(error) && !isReplaced(error);
}
/** The object was deleted and recreated: the name has another uid. */
export function isReplaced(error: unknown): boolean {
  if (findCause(error, isObjectReplaced) !== undefined) return true;
  const found = findApiError(error);
  if (found === undefined) return false;
  return (
    found.trait === "replaced" ||
    (isInvalid(found) && found.causes.some(({ field }) => field === "metadata.uid"))
  );
}
function isObjectReplaced(error: unknown): error is KonvergeError {
  return isKonvergeError(error) && error.code === "object_replaced";
}
/** 404: the object, its kind or its namespace does not exist. {@link ignoreNotFound} accepts it. */
export function isNotFound(error: unknown): boolean {
  return byReasonOrStatus(error, "NotFound", 404);
}
/** 409 of a create: the name is taken. */
export function isAlreadyExists(error: unknown): boolean {
  return byReason(error, "AlreadyExists");
}
/**
 * 422. With causes, the object is invalid; without causes, a JSON Patch did not apply (a `test` failed or a path is
 * missing).
 */
export function isInvalid(error: unknown): boolean {
  return byReasonOrStatus(error, "Invalid", 422);
}
/** 422 of a JSON Patch that does not apply. The server does not report whether a `test` failed or a path is missing. */
export function isInapplicable(error: unknown): boolean {
  return isInvalid(error) && findApiError(error)?.causes.length === 0;
}
/** 403: a missing permission, or a rejection by admission. See {@link isNotPermitted} and {@link isQuotaExceeded}. */
export function isForbidden(error: unknown): boolean {
  return byReasonOrStatus(error, "Forbidden", 403);
}
/** 401: the credentials are missing, expired or rejected. */
export function isUnauthorized(error: unknown): boolean {
  return byReasonOrStatus(error, "Unauthorized", 401);
}
/** 410 `Gone`: the resource is no longer available. An old version or continue token is {@link isExpired}. */
export function isGone(error: unknown): boolean {
  return byReasonOrStatus(error, "Gone", 410);
}
/** 410 of a version or continue token that is too old: list again. */
export function isExpired(error: unknown): boolean {
  return byReason(error, "Expired");
}
/** 429: the server is overloaded, or an eviction would violate a PodDisruptionBudget. See {@link suggestsDelayMs}. */
export function isTooManyRequests(error: unknown): boolean {
  return byReason(error, "TooManyRequests") || findApiError(error)?.status === 429;
}
/** 504: the write may have succeeded; read again before repeating it. */
export function isTimeout(error: unknown): boolean {
  return byReasonOrStatus(error, "Timeout", 504);
}
/** 504 of a read at a version that the server has not reached yet. */
export function isResourceVersionTooLarge(error: unknown): boolean {
  return isTimeout(error) && findApiError(error)?.trait === "resourceVersionTooLarge";
}
/** 500 `ServerTimeout`: the server could not complete the call in time. Retry after {@link suggestsDelayMs}. */
export function isServerTimeout(error: unknown): boolean {
  return byReason(error, "ServerTimeout");
}
/** 500: the server failed, or a webhook that it calls failed. */
export function isInternalError(error: unknown): boolean {
  return byReasonOrStatus(error, "InternalError", 500);
}
/** 503: the server or an aggregated API does not serve calls at the moment. */
export function isServiceUnavailable(error: unknown): boolean {
  return byReasonOrStatus(error, "ServiceUnavailable", 503);
}
/** 400: the server cannot parse the request. */
export function isBadRequest(error: unknown): boolean {
  return byReasonOrStatus(error, "BadRequest", 400);
}
/** 405: the resource does not support the verb. */
export function isMethodNotAllowed(error: unknown): boolean {
  return byReasonOrStatus(error, "MethodNotAllowed", 405);
}
/** 406: the server cannot respond in the requested media type. */
export function isNotAcceptable(error: unknown): boolean {
  return byReasonOrStatus(error, "NotAcceptable", 406);
}
/** 415: the server does not accept the content type, such as a strategic merge patch of a custom resource. */
export function isUnsupportedMediaType(error: unknown): boolean {
  return byReasonOrStatus(error, "UnsupportedMediaType", 415);
}
/** 413: the object or the request is too large. */
export function isRequestEntityTooLarge(error: unknown): boolean {
  return byReason(error, "RequestEntityTooLarge") || findApiError(error)?.status === 413;
}
/** 403 because a ResourceQuota is used up: may succeed later, unlike other 403s. */
export function isQuotaExceeded(error: unknown): boolean {
  return isForbidden(error) && findApiError(error)?.trait === "quotaExceeded";
}
/** 403 because the account lacks a permission, not because admission rejects the object. */
export function isNotPermitted(error: unknown): boolean {
  return isForbidden(error) && findApiError(error)?.trait === "notPermitted";
}
/** 403 of a create in a namespace that is being deleted. */
export function isNamespaceTerminating(error: unknown): boolean {
  return isForbidden(error) && hasCause(error, "NamespaceTerminating");
}

/** For `catch`: returns undefined if the object does not exist; rethrows any other error. */
export function ignoreNotFound(error: unknown): undefined {
  if (isNotFound(error)) return undefined;
  throw error;
}

/** The delay that the server requests, in ms; undefined if there is none (apimachinery `SuggestsClientDelay`). */
export function suggestsDelayMs(error: unknown): number | undefined {
  const found = findApiError(error);
  if (found === undefined) return undefined;
  if (found.retryAfterMs !== undefined && found.retryAfterMs > 0) return found.retryAfterMs;
  return found.reason === "ServerTimeout" ? (found.retryAfterMs ?? 0) : undefined;
}
