import { findCause, isKonvergeError } from "@konverge/core";
import {
  isAlreadyExists,
  isKubeApiError,
  isNotFound,
  isNotPermitted,
  isOptimisticConflict,
  isReplaced,
} from "@konverge/kube";
import type { Verdict } from "../store/mutation-store.ts";

const REFUSED: ReadonlySet<number> = new Set([400, 403, 404, 405, 406, 409, 413, 415, 422]);
/** Longest message of the server that is kept. */
const MAX_MESSAGE = 2_000;

/**
 * What a failed write means. `moved`: nothing was written, and the object must be read again. `broken`: the server may have made
 * the write. `refused`: for its content. `forbidden`: for any content. `failed`: the attempt ends; the server may have made the
 * write.
 */
export type WriteFailure = "moved" | "broken" | "refused" | "forbidden" | "failed";

export function failureOf(error: unknown, { isNew }: { readonly isNew: boolean }): WriteFailure {
  if (isReplaced(error) || isOptimisticConflict(error) || isAlreadyExists(error)) return "moved";
  // The 404 of a create is about its namespace or kind.
  if (isNotFound(error) && !isNew) return "moved";
  if (isNotPermitted(error)) return "forbidden";
  if (isKubeApiError(error)) return REFUSED.has(error.status) ? "refused" : "failed";
  const code = findCause(error, isKonvergeError)?.code;
  if (code === "kube_unreachable" || code === "kube_timeout") return "broken";
  return code === "invalid_request" || code === "invalid_draft" ? "refused" : "failed";
}

/** The verdict of a mutation that the server has rejected. */
export function rejectionOf(error: unknown): Verdict {
  const known = findCause(error, isKonvergeError);
  const message = (error instanceof Error ? error.message : String(error)).slice(0, MAX_MESSAGE);
  return { outcome: "rejected", error: { code: known?.code ?? "internal", message } };
}
