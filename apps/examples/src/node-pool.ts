import { anyOf, defineController, generationChanged, setCondition, statusChanged } from "konverge";
import { ConfigMap } from "konverge/kinds";
import { dataOf } from "./data-of.ts";
import { Machine, NodePool } from "./resources.ts";

/** Keeps as many machines as the pool's spec says, and reports their number in the status. */
export const nodePool = defineController({
  name: "node-pool",
  // A status write that was skipped because the watch showed an older status is repeated.
  for: { type: NodePool, predicate: anyOf(generationChanged, statusChanged) },
  owns: [Machine],
  // Read from the watch; a new image applies to new machines only.
  watches: [{ type: ConfigMap, map: () => [] }],
  async reconcile({ object: pool, kube }) {
    const wanted = Array.from(
      { length: pool.spec.replicas },
      (_, n) => `${pool.metadata.name}-${n}`,
    );
    const machines = await kube.list(Machine, { ownedBy: pool });
    const present = new Set(machines.map(({ metadata }) => metadata.name));
    const missing = wanted.filter((name) => !present.has(name));
    const surplus = machines.filter(({ metadata }) => !wanted.includes(metadata.name));
    const { image = "" } = dataOf(await kube.list(ConfigMap), "machine");

    for (const name of missing)
      await kube.create(Machine, { name, ownedBy: pool, spec: { image } });
    for (const machine of surplus) await kube.delete(machine);
    // The changed machines start the handler again, and the status follows.
    if (missing.length > 0 || surplus.length > 0) return;

    const { generation: observedGeneration = 0 } = pool.metadata;
    const { status } = pool;
    if (status?.machines === wanted.length && status.observedGeneration === observedGeneration) {
      return;
    }
    // Other programs write labels and annotations of the pool: no conflict, since only the status is tested.
    await kube.mutateStatus(
      pool,
      (draft) => {
        draft.status.machines = wanted.length;
        draft.status.observedGeneration = observedGeneration;
        setCondition(draft, { type: "Ready", status: "True", reason: "MachinesCounted" });
      },
      { strategy: "fields" },
    );
  },
});
