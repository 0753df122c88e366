import { isJsonObject, parseApiVersion, type ApiObject, type JsonValue } from "@konverge/core";
import { builtInReadiness, BUILT_IN_GROUPS } from "./built-in-readiness.ts";
import { CURRENT, failed, inProgress, type Readiness } from "./readiness-state.ts";
import { findCondition, statusOf, type ReportedCondition } from "./reported-conditions.ts";

export interface ReadinessOptions {
  /**
   * What a custom resource without a condition Ready is. `inProgress` (default) waits until its controller says so; `ready` is for
   * those whose controller never does.
   */
  readonly none?: "ready" | "inProgress";
  /**
   * Version that one's own write has left behind. A condition that does not say which generation it is about counts only once the
   * status was written since.
   */
  readonly writtenVersion?: string;
  /** Epoch ms. */
  readonly nowMs?: number;
}

/**
 * Judges an object by kstatus (cli-utils `pkg/kstatus/status`: generic.go, core.go), and stricter where that is known to say Current
 * too early: a custom resource that nobody has looked at yet (kustomize-controller#387, cluster-api#9299), and a condition Ready from
 * before the last change of the spec (flux2#5855).
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

/** Why what its status says is about an older generation; undefined when it is not. */
export function findUnseenGeneration(object: ApiObject): string | undefined {
  const { generation } = object.metadata;
  const { observedGeneration } = statusOf(object);
  if (generation === undefined || typeof observedGeneration !== "number") return undefined;
  if (observedGeneration === generation) return undefined;
  return `its controller has seen generation ${observedGeneration} of ${generation}`;
}

/** Of a condition that says which generation it is about. */
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
      'has no condition Ready; if its controller never sets one, wait with none: "ready", or for one of its fields',
    );
  }
  if (ready.status !== "True") return inProgress(statusTextOf(ready, "is not ready"));
  if (isAboutOlderGeneration(ready, object)) {
    return inProgress(`is ready as of generation ${ready.observedGeneration}`);
  }
  const saysGeneration =
    ready.observedGeneration !== undefined ||
    typeof statusOf(object)["observedGeneration"] === "number";
  if (saysGeneration || hasNewStatus(object, ready, writtenVersion)) return CURRENT;
  return inProgress(
    "was ready before its last change, and its status does not say of which generation it is",
  );
}

/** Whether the status was written behind the last change of the spec. Times of the API server are whole seconds. */
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

/** Whether a Job has run to its end, as Flux's and Helm's readers have it: that it was started is not enough. */
export function completionOf(job: ApiObject): Readiness {
  if (job.metadata.deletionTimestamp !== undefined) {
    return { status: "terminating", message: "is being deleted" };
  }
  const failure = findCondition(job, "Failed");
  if (failure?.status === "True") return failed(statusTextOf(failure, "has failed"));
  if (findCondition(job, "Complete")?.status === "True") return CURRENT;
  const { active, succeeded } = statusOf(job);
  if (isSuspended(job)) return inProgress("is suspended");
  return inProgress(`${countOf(succeeded)} pods have succeeded, ${countOf(active)} run`);
}

function isSuspended(job: ApiObject): boolean {
  const { spec } = job as ApiObject & { readonly spec?: JsonValue };
  return isJsonObject(spec) && spec["suspend"] === true;
}

function countOf(value: JsonValue | undefined): number {
  return typeof value === "number" ? value : 0;
}
