import { isJsonObject, parseApiVersion, type ApiObject, type JsonValue } from "@konverge/core";
import { BUILT_IN_GROUPS } from "../names/built-in-groups.ts";
import { builtInReadiness } from "./built-in-readiness.ts";
import { CURRENT, failed, inProgress, type Readiness } from "./readiness-state.ts";
import { findCondition, statusOf, type ReportedCondition } from "./reported-conditions.ts";

export interface ReadinessOptions {
  /**
   * The result for a custom resource without a Ready condition. `inProgress` (default) waits until its controller sets
   * one; `ready` is for controllers that never do.
   */
  readonly none?: "ready" | "inProgress";
  /** Version after one's own write. A condition without a generation counts only if the status was written after it. */
  readonly writtenVersion?: string;
  /** Epoch ms. */
  readonly nowMs?: number;
}

/**
 * Evaluates an object by kstatus (cli-utils `pkg/kstatus/status`: generic.go, core.go). It is stricter where kstatus is
 * known to report Current too early: for a custom resource that no controller has observed yet
 * (kustomize-controller#387, cluster-api#9299), and for a Ready condition from before the last change of the spec
 * (flux2#5855).
 */
export function readinessOf(
  object: ApiObject | undefined,
  { none = "inProgress", writtenVersion, nowMs = Date.now() }: ReadinessOptions = {},
): Readiness {
  if (object === undefined) return { status: "notFound", message: "does not exist" };
  const { metadata } = object;
  if (metadata.deletionTimestamp !== undefined) {
    return { status: "terminating", message: "is being deleted" };
  }
  const unseen = findUnseenGeneration(object);
  if (unseen !== undefined) return inProgress(unseen);
  const reconciling = findCondition(object, "Reconciling");
  if (reconciling?.status === "True")
    return inProgress(statusTextOf(reconciling, "is being reconciled"));
  const stalled = findCondition(object, "Stalled");
  if (stalled?.status === "True") {
    return failed(statusTextOf(stalled, "is stalled"));
  }
  const builtIn = builtInReadiness(object, nowMs);
  if (builtIn !== undefined) return builtIn;
  return fromReadyCondition(object, none, writtenVersion);
}

/** Returns why the status describes an older generation; undefined if it does not. */
export function findUnseenGeneration(object: ApiObject): string | undefined {
  const { generation } = object.metadata;
  const { observedGeneration } = statusOf(object);
  if (generation === undefined || typeof observedGeneration !== "number") return undefined;
  if (observedGeneration === generation) return undefined;
  return `its controller has observed generation ${observedGeneration} of ${generation}`;
}

/** Returns true if the condition names an older generation than the object's. */
export function isAboutOlderGeneration(
  { observedGeneration }: ReportedCondition,
  { metadata }: ApiObject,
): boolean {
  return observedGeneration !== undefined && observedGeneration < (metadata.generation ?? 0);
}

export function statusTextOf({ reason, message }: ReportedCondition, otherwise: string): string {
  if (message !== undefined && message !== "") return message;
  return reason === undefined || reason === "" ? otherwise : `${otherwise}: ${reason}`;
}

function fromReadyCondition(
  object: ApiObject,
  none: "ready" | "inProgress",
  writtenVersion: string | undefined,
): Readiness {
  const ready = findCondition(object, "Ready");
  if (ready === undefined) {
    const isCustom = !BUILT_IN_GROUPS.has(parseApiVersion(object.apiVersion).group);
    if (!isCustom || none === "ready") return CURRENT;
    return inProgress(
      'has no Ready condition; if its controller never sets one, wait with none: "ready", or for one of its fields',
    );
  }
  if (ready.status !== "True") return inProgress(statusTextOf(ready, "is not ready"));
  if (isAboutOlderGeneration(ready, object)) {
    return inProgress(`is ready for generation ${ready.observedGeneration} only`);
  }
  const saysGeneration =
    ready.observedGeneration !== undefined ||
    typeof statusOf(object)["observedGeneration"] === "number";
  if (saysGeneration || hasNewStatus(object, ready, writtenVersion)) return CURRENT;
  return inProgress(
    "was ready before its last change, and its status does not report a generation",
  );
}

/**
 * Returns true if the status was written after the last change of the spec. Times of the API server are whole seconds.
 */
function hasNewStatus(
  { metadata }: ApiObject,
  ready: ReportedCondition,
  writtenVersion: string | undefined,
): boolean {
  if (metadata.generation === undefined) return true;
  const isUntouched = writtenVersion !== undefined && metadata.resourceVersion === writtenVersion;
  const entries = metadata.managedFields ?? [];
  const newest = (times: readonly (string | undefined)[]) =>
    Math.max(-Infinity, ...times.map((time) => Date.parse(time ?? "")).filter(Number.isFinite));
  const specAtMs = newest(
    entries
      .filter(({ subresource, fieldsV1 }) => !subresource && fieldsV1?.["f:spec"] !== undefined)
      .map(({ time }) => time),
  );
  if (specAtMs === -Infinity) return !isUntouched;
  const statusAtMs = newest([
    ready.lastTransitionTime,
    ...entries.filter(({ subresource }) => subresource === "status").map(({ time }) => time),
  ]);
  return isUntouched ? statusAtMs > specAtMs : statusAtMs >= specAtMs;
}

/** Returns whether a Job has completed, as in Flux and Helm: a started Job is not enough. */
export function completionOf(job: ApiObject): Readiness {
  if (job.metadata.deletionTimestamp !== undefined) {
    return { status: "terminating", message: "is being deleted" };
  }
  const failure = findCondition(job, "Failed");
  if (failure?.status === "True") return failed(statusTextOf(failure, "has failed"));
  if (findCondition(job, "Complete")?.status === "True") return CURRENT;
  const { active, succeeded } = statusOf(job);
  if (isSuspended(job)) return inProgress("is suspended");
  return inProgress(`${countOf(succeeded)} Pods succeeded, ${countOf(active)} active`);
}

function isSuspended(job: ApiObject): boolean {
  const { spec } = job as ApiObject & { readonly spec?: JsonValue };
  return isJsonObject(spec) && spec["suspend"] === true;
}

function countOf(value: JsonValue | undefined): number {
  return typeof value === "number" ? value : 0;
}
