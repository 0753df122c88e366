import { defined, ensureError, sleepMs } from "@konverge/core";
import { ignoreNotFound, type KubeClient } from "@konverge/kube";
import { Deployment } from "konverge/kinds";

export type DeploymentObject = NonNullable<(typeof Deployment)["objectType"]>;
type Status = NonNullable<DeploymentObject["status"]>;

export interface StandInOptions {
  readonly namespace: string;
  /** How long a pod takes to be replaced, in ms. */
  readonly podMs: number;
  /** Receives failed writes. */
  readonly onError: (error: Error) => void;
}

/** Pods with an image of this tag never come up. */
const BROKEN_TAG = ":broken";

/**
 * Replaces the Deployment controller and the nodes, which an API server alone does not have: it writes the same status,
 * pod by pod, as on a cluster with enough capacity. It creates no ReplicaSets and no Pods.
 */
export function standInForDeployments(
  client: KubeClient,
  { namespace, podMs, onError }: StandInOptions,
): AsyncDisposable {
  const stopping = new AbortController();
  /** Template of the counted pods, by uid. */
  const templates = new Map<string, string>();

  const round = async () => {
    const { items } = await client.list(Deployment, { namespace, signal: stopping.signal });
    for (const { metadata } of items) {
      const { uid = "", name } = metadata;
      let seen = "";
      const change = (draft: DeploymentObject) => {
        seen = JSON.stringify(draft.spec?.template);
        draft.status = nextStatus(draft, templates.get(uid) !== seen);
      };
      const options = { subresource: "status", uid, signal: stopping.signal } as const;
      const changed = await client
        .mutate(Deployment, { namespace, name }, change, options)
        .catch(ignoreNotFound);
      if (changed !== undefined) templates.set(uid, seen);
    }
  };
  const run = async () => {
    while (!stopping.signal.aborted) {
      await round().catch((error: unknown) => {
        if (!stopping.signal.aborted) onError(ensureError(error));
      });
      await sleepMs(podMs, stopping.signal).catch(() => undefined);
    }
  };
  const running = run();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
    },
  };
}

/** Advances the rollout by one pod. Old pods stay until their replacements are ready, so no pod is ever missing. */
export function nextStatus(deployment: DeploymentObject, isNewTemplate: boolean): Status {
  const { spec, status = {}, metadata } = deployment;
  const wanted = spec?.replicas ?? 1;
  const isBroken =
    spec?.template.spec?.containers.some(({ image = "" }) => image.endsWith(BROKEN_TAG)) ?? false;
  const before = isNewTemplate ? 0 : (status.updatedReplicas ?? 0);
  const updated = isBroken ? 0 : Math.min(wanted, before + 1);
  // The first pods of a new Deployment replace none.
  const old = Math.min(wanted, status.availableReplicas ?? 0);
  const available = Math.max(updated, old);
  const isDone = updated === wanted;
  const time = new Date().toISOString().replace(/\.\d+/, "");
  const condition = (type: string, isTrue: boolean, reason: string) => {
    const known = status.conditions?.find((one) => one.type === type);
    const isSame = known?.status === (isTrue ? "True" : "False");
    return {
      type,
      status: isTrue ? "True" : "False",
      reason,
      message: "written by the demo's stand-in for the Deployment controller",
      lastTransitionTime: isSame ? (known?.lastTransitionTime ?? time) : time,
      lastUpdateTime: isSame && known?.reason === reason ? (known?.lastUpdateTime ?? time) : time,
    };
  };
  return {
    ...defined({ observedGeneration: metadata.generation }),
    replicas: isDone ? wanted : Math.max(available, Math.min(wanted + 1, available + 1)),
    updatedReplicas: updated,
    readyReplicas: available,
    availableReplicas: available,
    ...(available < wanted ? { unavailableReplicas: wanted - available } : {}),
    conditions: [
      condition("Available", available === wanted, "MinimumReplicasAvailable"),
      isBroken
        ? condition("Progressing", false, "ProgressDeadlineExceeded")
        : condition("Progressing", true, isDone ? "NewReplicaSetAvailable" : "ReplicaSetUpdated"),
    ],
  };
}
