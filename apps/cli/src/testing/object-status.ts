import { KonvergeError, type ApiObject, type JsonObject } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";

const NAMESPACE = "default";

/** Writes the status that the controllers of a cluster would write. */
export interface ObjectStatus {
  setReady<T extends ApiObject>(object: T): Promise<T>;
  completeJob<T extends ApiObject>(job: T): Promise<T>;
  failJob<T extends ApiObject>(job: T, message: string): Promise<T>;
}

export function createObjectStatus(client: KubeClient): ObjectStatus {
  const write = async <T extends ApiObject>(
    { apiVersion, kind, metadata: { namespace, name } }: T,
    statusOf: (live: T) => JsonObject,
  ): Promise<T> => {
    const type = await client.resolveType(apiVersion, kind);
    const at = { name, ...(type.scope === "Cluster" ? {} : { namespace: namespace ?? NAMESPACE }) };
    const live = (await client.get(type, at)) as T;
    const body = { status: statusOf(live) };
    const how = { subresource: "status", unguarded: true };
    return (await client.patch(type, at, { type: "merge", body }, how)) as unknown as T;
  };
  return {
    setReady: async (object) => await write(object, readyStatus),
    completeJob: async (job) => await write(asJob(job), completeStatus),
    failJob: async (job, message) => await write(asJob(job), () => failedStatus(message)),
  };
}

function asJob<T extends ApiObject>(object: T): T {
  if (object.kind === "Job" && object.apiVersion === "batch/v1") return object;
  throw new KonvergeError(
    "invalid_request",
    `completeJob and failJob need a Job of batch/v1 (got ${object.kind} of ${object.apiVersion}); use setReady`,
  );
}

function completeStatus(job: ApiObject): JsonObject {
  const now = timestamp();
  const { completions } = (job as { readonly spec?: { readonly completions?: number } }).spec ?? {};
  return {
    startTime: now,
    completionTime: now,
    active: 0,
    ready: 0,
    succeeded: completions ?? 1,
    conditions: [trueCondition("SuccessCriteriaMet"), trueCondition("Complete")],
  };
}

function failedStatus(message: string): JsonObject {
  const why = { reason: "BackoffLimitExceeded", message };
  return {
    startTime: timestamp(),
    active: 0,
    ready: 0,
    failed: 1,
    conditions: [trueCondition("FailureTarget", why), trueCondition("Failed", why)],
  };
}

/** Returns a status that is ready by the rules of kstatus. */
function readyStatus(object: ApiObject): JsonObject {
  const { generation: observedGeneration = 1 } = object.metadata;
  const spec = (object as { readonly spec?: JsonObject }).spec ?? {};
  const replicas = typeof spec["replicas"] === "number" ? spec["replicas"] : 1;
  const ready = { replicas, readyReplicas: replicas, availableReplicas: replicas };
  switch (`${object.kind}.${object.apiVersion}`) {
    case "Deployment.apps/v1":
      return {
        ...ready,
        observedGeneration,
        updatedReplicas: replicas,
        conditions: [
          trueCondition("Available", { reason: "MinimumReplicasAvailable" }),
          trueCondition("Progressing", { reason: "NewReplicaSetAvailable" }),
        ],
      };
    case "StatefulSet.apps/v1":
      return {
        ...ready,
        observedGeneration,
        updatedReplicas: replicas,
        currentReplicas: replicas,
        currentRevision: "ready",
        updateRevision: "ready",
      };
    case "ReplicaSet.apps/v1":
      return { ...ready, observedGeneration, fullyLabeledReplicas: replicas };
    case "DaemonSet.apps/v1":
      return {
        observedGeneration,
        desiredNumberScheduled: 1,
        currentNumberScheduled: 1,
        updatedNumberScheduled: 1,
        numberAvailable: 1,
        numberReady: 1,
        numberMisscheduled: 0,
      };
    case "Pod.v1":
      return { phase: "Running", conditions: [trueCondition("Ready")] };
    case "PersistentVolumeClaim.v1":
      return { phase: "Bound" };
    case "Service.v1":
      return { loadBalancer: { ingress: [{ ip: "192.0.2.1" }] } };
    case "Job.batch/v1":
      throw new KonvergeError(
        "invalid_request",
        "a Job is never ready; use completeJob or failJob",
      );
    default:
      return {
        observedGeneration,
        conditions: [trueCondition("Ready", { reason: "Ready" })],
      };
  }
}

function trueCondition(type: string, more: JsonObject = {}): JsonObject {
  return { type, status: "True", lastTransitionTime: timestamp(), message: "", ...more };
}

/** Whole seconds, as the API server stores times. */
function timestamp(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, "Z");
}
