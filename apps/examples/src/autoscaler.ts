import { defineController, type ResourceType, type ApiObject } from "konverge";
import { Autoscaler, NodePool } from "./resources.ts";

interface LoadMap extends ApiObject {
  data?: Record<string, string>;
}
const ConfigMap: ResourceType<LoadMap> = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  resource: "configmaps",
  scope: "Namespaced",
};

/** Reads the load from a ConfigMap named `load` and writes the pool's replicas: another operator's object. */
export const autoscaler = defineController({
  name: "autoscaler",
  for: Autoscaler,
  async reconcile({ object: scaler, kube, requeueAfter }) {
    const { poolRef, min, max, targetLoad } = scaler.spec;
    const loads = await kube.get(ConfigMap, "load");
    const load = Number(loads.data?.[poolRef] ?? 0);
    const replicas = Math.min(max, Math.max(min, Math.ceil(load / targetLoad)));

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
