import { KonvergeError } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import type { AnyWorkflow, ClusterAccess } from "@konverge/workflow";
import {
  runActivation,
  type ActivationEnd,
} from "../../../libs/workflow/src/execution/run-activation.ts";
import type { Held, RunStore } from "../../../libs/workflow/src/store/run-store.ts";

/** Thrown by the store in place of the death of its process. */
class Died extends Error {}

const MAX_ACTIVATIONS = 20;

export interface Activations {
  readonly store: RunStore;
  start(workflow: AnyWorkflow, id: string, input?: unknown): Promise<void>;
  /** Takes the run from whoever has it. */
  claim(workflow: AnyWorkflow, id: string): Promise<Held>;
  activate(workflow: AnyWorkflow, held: Held): Promise<ActivationEnd>;
  /** Activates again and again until the run has ended. */
  finish(workflow: AnyWorkflow, id: string): Promise<void>;
  /** The process dies at the next commit of this step. */
  dieAtCommit(step: string, when: "before" | "after"): void;
}

/** Runs activations one by one, without a queue: each is what a worker of its own would do. */
export function createActivations(
  plain: RunStore,
  clients: Record<string, KubeClient>,
): Activations {
  let lease = 0;
  const deaths = new Map<string, "before" | "after">();
  const store: RunStore = {
    ...plain,
    async commit(held, step, record, how) {
      const death = deaths.get(step);
      deaths.delete(step);
      if (death === "before") throw new Died();
      const stored = await plain.commit(held, step, record, how);
      if (death === "after") throw new Died();
      return stored;
    },
  };
  const clusters: ClusterAccess = {
    home: "default",
    async client(cluster) {
      const client = clients[cluster];
      if (client !== undefined) return client;
      throw new KonvergeError("invalid_request", `no cluster "${cluster}"`);
    },
  };
  const activations: Activations = {
    store,
    async start({ name, version }, id, input) {
      await store.start({ workflow: name, id, version, input });
    },
    async claim({ name }, id) {
      lease += 1;
      const held = await store.claim({ workflow: name, id }, { lease, owner: String(lease) });
      if (held.kind !== "held") throw new Error(`${id} is ${held.kind}`);
      return held;
    },
    activate: (workflow, held) =>
      runActivation({
        store,
        workflow,
        held,
        stopped: new AbortController().signal,
        cancelOrdered: new AbortController().signal,
        startChild: { start: async () => undefined, cancel: async () => undefined },
        clock: () => performance.now(),
        random: () => 0,
        clusters,
      }),
    async finish(workflow, id) {
      for (let count = 0; count < MAX_ACTIVATIONS; count += 1) {
        const end = await activations.activate(workflow, await activations.claim(workflow, id));
        if (end.kind === "ended") return;
        if (end.kind === "fault" && !(end.error instanceof Died)) throw end.error;
        if (end.kind === "stuck") throw new Error(end.reason);
        if (end.kind === "parked") await new Promise((resolve) => setTimeout(resolve, end.afterMs));
      }
      throw new Error(`${id} has not ended after ${MAX_ACTIVATIONS} activations`);
    },
    dieAtCommit: (step, when) => void deaths.set(step, when),
  };
  return activations;
}
