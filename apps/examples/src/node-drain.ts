import {
  all,
  defineWorkflow,
  gone,
  TerminalError,
  type ObjectRef,
  type ReadonlyObject,
} from "konverge";
import { Node, Pod } from "konverge/kinds";
import { z } from "zod";

type NodeObject = NonNullable<(typeof Node)["objectType"]>;
type PodObject = NonNullable<(typeof Pod)["objectType"]>;

const Drain = z.object({
  node: z.string().min(1),
  /** Longest delay by disruption budgets. */
  patienceMinutes: z.number().min(0).default(60),
});

/** Maximum of objects per wait. */
const AT_ONCE = 100;

/**
 * Drains a node: no new pods are scheduled, and the existing ones are evicted as their disruption budgets allow. A failed or
 * cancelled drain makes the node schedulable as before; evicted pods do not return.
 */
export const nodeDrain = defineWorkflow(
  "node-drain",
  { version: 1, input: Drain, kinds: [Node, Pod] },
  async (w, { node, patienceMinutes }) => {
    const at = { apiVersion: "v1", kind: "Node", name: node };
    const before = await w.step("look at the node", async (k) => {
      const found = await k.find<NodeObject>(at);
      if (found === undefined) throw new TerminalError(`node ${node} does not exist`);
      return { unschedulable: found.spec?.unschedulable ?? false };
    });
    await w.step("cordon", (k) => k.mutate<NodeObject>(at, (draft) => cordon(draft, true)), {
      undo: async (_, k) => {
        await k.mutate<NodeObject>(at, (draft) => cordon(draft, before.unschedulable));
      },
    });
    const pods = await w.step("list its pods", async (k) => {
      const fieldSelector = `spec.nodeName=${node}`;
      const found = await k.list(Pod, { fieldSelector });
      return found.filter(mustLeave).map(refOf);
    });
    const endMs = (await w.now("begun")) + patienceMinutes * 60_000;
    await Promise.all(
      pods.map(async (pod) => {
        await w.step(`evict ${pod.name.slice(0, 150)} ${pod.uid}`, async (k) => {
          // A 429 of a disruption budget uses no tries of the step, so the limit is here.
          if (Date.now() > endMs)
            throw new TerminalError(`disruption budgets block the eviction of ${pod.name}`);
          await k.evict(pod);
        });
      }),
    );
    for (let from = 0; from < pods.length; from += AT_ONCE) {
      const some = pods.slice(from, from + AT_ONCE).map((pod) => gone(pod));
      await w.waitFor("pods are gone", all(...some), { timeout: "30m" });
    }
    return { node, evicted: pods.length };
  },
);

function cordon(node: NodeObject, unschedulable: boolean): void {
  node.spec = { ...node.spec, unschedulable };
}

/** Pods of a DaemonSet would return immediately, and mirror pods belong to the kubelet. */
function mustLeave({ metadata }: ReadonlyObject<PodObject>): boolean {
  const { ownerReferences = [], annotations = {} } = metadata;
  const isOfDaemonSet = ownerReferences.some(
    ({ kind, controller }) => kind === "DaemonSet" && controller === true,
  );
  return !isOfDaemonSet && annotations["kubernetes.io/config.mirror"] === undefined;
}

function refOf({ metadata }: ReadonlyObject<PodObject>) {
  const { namespace = "default", name, uid = "", resourceVersion = "" } = metadata;
  return {
    apiVersion: "v1",
    kind: "Pod",
    namespace,
    name,
    uid,
    resourceVersion,
  } satisfies ObjectRef;
}
