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

/** Answers of a server that has not processed the request. */
const UNMADE: ReadonlySet<number> = new Set([401, 429]);
/** Of etcd and of its client, which kube-apiserver answers as a failure of its own. */
const TOO_LARGE = /request is too large|trying to send message larger than max/;
const REFUSED: ReadonlySet<number> = new Set([400, 403, 404, 405, 406, 409, 413, 415, 422]);
/** Longest message of the server that is kept. */
const MAX_MESSAGE = 2_000;

/**
 * What a failed write means. `moved`: nothing was written, and the object must be read again. `broken`: the server may have made
 * the write. `refused`: for its content. `forbidden`: for any content. `unmade`: the attempt ends; nothing was written. `failed`: the
 * same, but the server may have made the write.
 */
export type WriteFailure = "moved" | "broken" | "refused" | "forbidden" | "unmade" | "failed";

export function failureOf(error: unknown, { isNew }: { readonly isNew: boolean }): WriteFailure {
  if (isReplaced(error) || isOptimisticConflict(error) || isAlreadyExists(error)) return "moved";
  // The 404 of a create is about its namespace or kind.
  if (isNotFound(error) && !isNew) return "moved";
  if (isNotPermitted(error)) return "forbidden";
  if (isKubeApiError(error)) {
    if (UNMADE.has(error.status)) return "unmade";
    const isRefused = REFUSED.has(error.status) || TOO_LARGE.test(error.message);
    return isRefused ? "refused" : "failed";
  }
  const code = findCause(error, isKonvergeError)?.code;
  if (code === "kube_unreachable" || code === "kube_timeout") return "broken";
  return code === "invalid_request" || code === "invalid_draft" ? "refused" : "failed";
}

/** True if the server failed, which a part of the content may cause. */
export function isServerFailure(error: unknown): boolean {
  return isKubeApiError(error) && error.status >= 500;
}

/** The verdict of a mutation that the server has rejected. */
export function rejectionOf(error: unknown): Verdict {
  const known = findCause(error, isKonvergeError);
  const message = (error instanceof Error ? error.message : String(error)).slice(0, MAX_MESSAGE);
  return { outcome: "rejected", error: { code: known?.code ?? "internal", message } };
}
