import {
  defined,
  LimitWaitError,
  type KonvergeError,
  type ResourceRef,
  type Outcome,
} from "@konverge/core";
import {
  isAlreadyExists,
  isConflict,
  isFieldManagerConflict,
  isKubeApiError,
  isNotFound,
  isQuotaExceeded,
  isResourceVersionTooLarge,
  isTooManyRequests,
  isUnauthorized,
  type KubeApiError,
} from "@konverge/kube";
import { findRootErrors } from "./root-errors.ts";
import { errorOfThrown } from "../define/thrown-error.ts";

/** Expired credentials affect the whole cluster; short enough to use new ones soon. */
const CREDENTIALS_AGAIN_MS = 5_000;
const STALE_READ_AGAIN_MS = 1_000;
/** Spread after `Retry-After`, at least this long or a quarter of the delay, because many callers get the same delay. */
const SPREAD_MS = 1_000;
const REFUSED = new Set([400, 403, 405, 406, 413, 415, 422]);

/** If there are several errors, the first of these outcomes wins. */
const SEVERITY: readonly Outcome["kind"][] = [
  "terminal",
  "deferred",
  "retry",
  "rejected",
  "conflict",
  "gone",
];

/** Returns the outcome for a thrown value. Considers causes, and each part of an AggregateError. */
export function classifyError(
  thrown: unknown,
  reconciled: ResourceRef,
  random: () => number = Math.random,
): Outcome {
  const error = errorOfThrown(thrown);
  const outcomes = findRootErrors(thrown).map((root) => {
    if (root === undefined) return retry(error);
    const outcome = classifyOurs(error, root, reconciled);
    // The guard spreads its own delays.
    return root.code === "deferred" ? outcome : spread(outcome, random);
  });
  const rank = (outcome: Outcome) => SEVERITY.indexOf(outcome.kind);
  return outcomes.reduce((worst, next) => (rank(next) < rank(worst) ? next : worst));
}

function classifyOurs(error: Error, ours: KonvergeError, reconciled: ResourceRef): Outcome {
  if (ours.code === "terminal") return { kind: "terminal", error };
  if (ours.code === "deferred") return deferralOf(ours);
  // The object was replaced; the next attempt reads its successor.
  if (ours.code === "object_replaced") return { kind: "conflict", error };
  if (ours.code === "field_conflict") return { kind: "rejected", error };
  if (isKubeApiError(ours)) return classifyApiError(error, ours, reconciled);
  return retry(error, ours.retryAfterMs);
}

/** Returns the outcome of an attempt that was deferred by the guard or by a named limit. */
export function deferralOf(error: KonvergeError): Outcome {
  return {
    kind: "deferred",
    afterMs: error.retryAfterMs ?? STALE_READ_AGAIN_MS,
    cause: error.message,
    ...(error instanceof LimitWaitError ? { endsOnRequest: true } : {}),
  };
}

function classifyApiError(error: Error, api: KubeApiError, reconciled: ResourceRef): Outcome {
  if (isFieldManagerConflict(api)) return { kind: "rejected", error };
  if (isConflict(api)) return { kind: "conflict", error };
  if (isNotFound(api) && isSame(api, reconciled)) return { kind: "gone" };
  if (isUnauthorized(api)) {
    return { kind: "deferred", afterMs: CREDENTIALS_AGAIN_MS, cause: "credentials" };
  }
  if (isTooManyRequests(api) && api.retryAfterMs !== undefined) {
    return { kind: "deferred", afterMs: api.retryAfterMs, cause: "throttled" };
  }
  if (isResourceVersionTooLarge(api)) {
    return {
      kind: "deferred",
      afterMs: api.retryAfterMs ?? STALE_READ_AGAIN_MS,
      cause: "staleRead",
    };
  }
  if (isAlreadyExists(api) || isQuotaExceeded(api)) return retry(error, api.retryAfterMs);
  if (REFUSED.has(api.status)) return { kind: "rejected", error };
  return retry(error, api.retryAfterMs);
}

function retry(error: Error, retryAfterMs?: number): Outcome {
  return { kind: "retry", error, ...defined({ retryAfterMs }) };
}

/** Adds a spread to the requested delay. */
function spread(outcome: Outcome, random: () => number): Outcome {
  const later = (ms: number) => ms + Math.round(random() * Math.max(SPREAD_MS, ms / 4));
  if (outcome.kind === "deferred") return { ...outcome, afterMs: later(outcome.afterMs) };
  if (outcome.kind !== "retry" || outcome.retryAfterMs === undefined) return outcome;
  return { ...outcome, retryAfterMs: later(outcome.retryAfterMs) };
}

function isSame({ ref }: KubeApiError, { group, resource, namespace, name }: ResourceRef): boolean {
  return (
    ref !== undefined &&
    ref.cluster === undefined &&
    ref.group === group &&
    ref.resource === resource &&
    ref.namespace === namespace &&
    ref.name === name
  );
}
