import { defineController, ignoreNotFound, setCondition } from "konverge";
import { ConfigMap } from "konverge/kinds";
import { Machine, NodePool } from "../load/kinds.ts";

/** Keeps the number of machines in the pool's spec, and reports the current number in its status. */
export const nodePool = defineController({
  name: "node-pool",
  for: NodePool,
  owns: [Machine],
  permissions: [{ type: ConfigMap, verbs: ["get"] }],
  async reconcile({ object: pool, kube }) {
    const wanted = Array.from(
      { length: pool.spec.replicas },
      (_, n) => `${pool.metadata.name}-${n}`,
    );
    const settings = await kube.get(ConfigMap, "machine").catch(ignoreNotFound);
    const image = settings?.data?.["image"] ?? "";
    const machines = await kube.list(Machine, { ownedBy: pool });
    const present = new Set(machines.map(({ metadata }) => metadata.name));

    for (const name of wanted) {
      if (!present.has(name)) await kube.create(Machine, { name, ownedBy: pool, spec: { image } });
    }
    for (const machine of machines) {
      if (!wanted.includes(machine.metadata.name)) await kube.delete(machine);
    }
    await kube.mutateStatus(pool, (draft) => {
      draft.status.machines = wanted.length;
      if (pool.metadata.generation !== undefined) {
        draft.status.observedGeneration = pool.metadata.generation;
      }
      setCondition(draft, { type: "Ready", status: "True", reason: "MachinesCounted" });
    });
  },
});
