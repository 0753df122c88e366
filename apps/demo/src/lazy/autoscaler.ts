import { defineController, ignoreNotFound } from "konverge";
import { ConfigMap } from "konverge/kinds";
import { Autoscaler, NodePool } from "../load/kinds.ts";

/**
 * Reads the load from the ConfigMap `load` and the maximum of a pool from the ConfigMap `quota`, and writes the pool's
 * replicas, which another operator reads. Without the ConfigMaps there is no load and no quota.
 */
export const autoscaler = defineController({
  name: "autoscaler",
  for: Autoscaler,
  permissions: [
    { type: ConfigMap, verbs: ["get"] },
    { type: NodePool, verbs: ["get", "patch"] },
  ],
  // Reads the load once a second on purpose.
  loopProtection: "accept",
  async reconcile({ object: scaler, kube, requeueAfter }) {
    const { poolRef, min, max, targetLoad } = scaler.spec;
    const loads = await kube.get(ConfigMap, "load").catch(ignoreNotFound);
    const load = Number(loads?.data?.[poolRef] ?? 0);
    const quota = await kube.get(ConfigMap, "quota").catch(ignoreNotFound);
    const most = Math.min(max, Number(quota?.data?.["machinesPerPool"] ?? max));
    const replicas = Math.min(most, Math.max(min, Math.ceil(load / targetLoad)));

    await kube.mutate({ type: NodePool, name: poolRef }, (pool) => {
      pool.spec.replicas = replicas;
    });
    await kube.mutateStatus(scaler, (draft) => {
      draft.status.desiredReplicas = replicas;
      if (scaler.metadata.generation !== undefined) {
        draft.status.observedGeneration = scaler.metadata.generation;
      }
    });
    return requeueAfter("1s");
  },
});
