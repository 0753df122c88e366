import { isKonvergeError } from "@konverge/core";
import { isKubeApiError, isOptimisticConflict } from "@konverge/kube";

/** True if the write was rejected because of its content, so that nothing was written. */
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

/** True if nothing was written and a retry is sufficient. */
export function isUnwritten(error: unknown): boolean {
  return (
    isRefusal(error) ||
    isOptimisticConflict(error) ||
    (isKonvergeError(error) && error.code === "deferred")
  );
}
