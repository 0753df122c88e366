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
  /** How long disruption budgets may hold it up. */
  patienceMinutes: z.number().min(0).default(60),
});

/** Objects that one wait may name. */
const AT_ONCE = 100;

/**
 * Takes a node out of service: no new pods, and those that are there leave as their disruption budgets allow. A drain that
 * fails or is cancelled gives the node back as it was; pods that have left stay away.
 */
export const nodeDrain = defineWorkflow(
  "node-drain",
  { version: 1, input: Drain, kinds: [Node, Pod] },
  async (w, { node, patienceMinutes }) => {
    const at = { apiVersion: "v1", kind: "Node", name: node };
    const before = await w.step("look at the node", async (k) => {
      const found = await k.get<NodeObject>(at);
      if (found === undefined) throw new TerminalError(`there is no node ${node}`);
      return { unschedulable: found.spec?.unschedulable ?? false };
    });
    await w.step("cordon", (k) => k.mutate<NodeObject>(at, (draft) => cordon(draft, true)), {
      undo: async (_, k) => {
        await k.mutate<NodeObject>(at, (draft) => cordon(draft, before.unschedulable));
      },
    });
    const pods = await w.step("list its pods", async (k) => {
      const fieldSelector = `spec.nodeName=${node}`;
      const found = await k.list<PodObject>({ apiVersion: "v1", kind: "Pod", fieldSelector });
      return found.filter(mustLeave).map(refOf);
    });
    const endMs = (await w.now("begun")) + patienceMinutes * 60_000;
    await Promise.all(
      pods.map(async (pod) => {
        await w.step(`evict ${pod.name.slice(0, 150)} ${pod.uid}`, async (k) => {
          // A 429 of a disruption budget costs none of the step's tries, so the end is said here.
          if (Date.now() > endMs) throw new TerminalError(`${pod.name} may not be disrupted`);
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

/** Pods of a DaemonSet would come back at once, and mirror pods are the kubelet's own. */
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
