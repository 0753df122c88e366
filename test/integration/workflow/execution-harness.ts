import { KonvergeError } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import type { AnyWorkflow, ClusterAccess } from "@konverge/workflow";
import {
  runExecution,
  type ExecutionEnd,
} from "../../../libs/workflow/src/execution/run-execution.ts";
import type { Held } from "../../../libs/workflow/src/store/run-journal-store.ts";
import type { RunStore } from "../../../libs/workflow/src/store/run-store.ts";
import { noChildren } from "../../support/no-children.ts";

/** Thrown by the store instead of ending the process. */
class Died extends Error {}

const MAX_EXECUTIONS = 20;

export interface Executions {
  readonly store: RunStore;
  start(workflow: AnyWorkflow, id: string, input?: unknown): Promise<void>;
  /** Claims the run from its holder. */
  claim(workflow: AnyWorkflow, id: string): Promise<Held>;
  execute(workflow: AnyWorkflow, held: Held): Promise<ExecutionEnd>;
  /** Executes the run repeatedly until it has ended. */
  finish(workflow: AnyWorkflow, id: string): Promise<void>;
  /** The process dies at the next commit of this step. */
  dieAtCommit(step: string, when: "before" | "after"): void;
}

/** Runs executions one by one without a queue, each as a separate worker would. */
export function createExecutions(plain: RunStore, clients: Record<string, KubeClient>): Executions {
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
  const executions: Executions = {
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
    execute: (workflow, held) =>
      runExecution({
        store,
        workflow,
        held,
        stopped: new AbortController().signal,
        startChild: noChildren,
        clock: () => performance.now(),
        random: () => 0,
        clusters,
      }),
    async finish(workflow, id) {
      for (let count = 0; count < MAX_EXECUTIONS; count += 1) {
        const end = await executions.execute(workflow, await executions.claim(workflow, id));
        if (end.kind === "ended") return;
        if (end.kind === "error" && !(end.error instanceof Died)) throw end.error;
        if (end.kind === "blocked") throw new Error(end.reason);
        if (end.kind === "waiting")
          await new Promise((resolve) => setTimeout(resolve, end.afterMs));
      }
      throw new Error(`${id} has not ended after ${MAX_EXECUTIONS} executions`);
    },
    dieAtCommit: (step, when) => void deaths.set(step, when),
  };
  return executions;
}
