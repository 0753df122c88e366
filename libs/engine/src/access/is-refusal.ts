import { isKonvergeError } from "@konverge/core";
import { isKubeApiError, isOptimisticConflict } from "@konverge/kube";

/** True when it is sure that nothing was written because of what was to be written, as it stood. */
export function isRefusal(error: unknown): boolean {
  if (isKubeApiError(error)) {
    return (
      error.status >= 400 && error.status < 500 && error.status !== 429 && error.status !== 401
    );
  }
  return (
    isKonvergeError(error) && (error.code === "invalid_draft" || error.code === "object_replaced")
  );
}

/** True when nothing is known to have been written, and to try again is all that is needed. */
export function isUnwritten(error: unknown): boolean {
  return (
    isRefusal(error) ||
    isOptimisticConflict(error) ||
    (isKonvergeError(error) && error.code === "deferred")
  );
}
