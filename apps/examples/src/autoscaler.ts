import { defineController, generationChanged, resourceVersionChanged } from "konverge";
import { ConfigMap } from "konverge/kinds";
import { dataOf } from "./data-of.ts";
import { Autoscaler, NodePool } from "./resources.ts";

/**
 * Reads the load from the ConfigMap `load` and the maximum per pool from the ConfigMap `quota`, and writes the replicas of the
 * pool, which belongs to another operator. An autoscaler has the name of its pool. Without the ConfigMaps there is no load and
 * no quota.
 */
export const autoscaler = defineController({
  name: "autoscaler",
  for: { type: Autoscaler, predicate: resourceVersionChanged },
  watches: [
    {
      type: ConfigMap,
      map: (object) => {
        const { namespace = "" } = object.metadata;
        return Object.keys(dataOf([object], "load")).map((name) => ({ namespace, name }));
      },
    },
    // The handler watches what it reads: any change of spec.replicas starts it again.
    {
      type: NodePool,
      predicate: generationChanged,
      map: ({ metadata: { namespace = "", name } }) => [{ namespace, name }],
    },
  ],
  permissions: [{ type: NodePool, verbs: ["patch"] }],
  // A changed quota applies within a minute.
  resync: "1m",
  async reconcile({ object: scaler, kube }) {
    const { poolRef, min, max, targetLoad } = scaler.spec;
    const maps = await kube.list(ConfigMap);
    const load = Number(dataOf(maps, "load")[poolRef] ?? 0);
    const most = Math.min(max, Number(dataOf(maps, "quota")["machinesPerPool"] ?? max));
    const replicas = Math.min(most, Math.max(min, Math.ceil(load / targetLoad)));

    const pools = await kube.list(NodePool);
    const pool = pools.find(({ metadata }) => metadata.name === poolRef);
    if (pool === undefined) return;
    if (pool.spec.replicas !== replicas) {
      await kube.mutate(
        pool,
        (draft) => {
          draft.spec.replicas = replicas;
        },
        // Tests only the replicas, since other programs write the pool as well.
        { strategy: "fields" },
      );
      // The change of the pool starts the handler again, and the status follows.
      return;
    }
    const { generation: observedGeneration = 0 } = scaler.metadata;
    const { status } = scaler;
    if (status?.desiredReplicas === replicas && status.observedGeneration === observedGeneration) {
      return;
    }
    await kube.mutateStatus(scaler, (draft) => {
      draft.status.desiredReplicas = replicas;
      draft.status.observedGeneration = observedGeneration;
    });
  },
});
