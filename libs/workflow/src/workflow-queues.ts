import { parseKey } from "@konverge/core";
import { createWorkQueue, QueuePumps, type WorkQueue } from "@konverge/queue";
import { formatRunId, keyOfRun, queueOfWorkflow, type RunRef } from "./define/run-ref.ts";

type QueueOptions = Omit<Parameters<typeof createWorkQueue>[0], "controller" | "pumps">;

/** The queues of a cluster's workflows and controllers, opened on first use. */
export class WorkflowQueues {
  readonly #options: QueueOptions;
  readonly #pumps: QueuePumps;
  readonly #queues = new Map<string, WorkQueue>();

  constructor(options: QueueOptions) {
    this.#options = options;
    this.#pumps = new QueuePumps(options.redis);
  }

  of(workflow: string): WorkQueue {
    return this.#open(queueOfWorkflow(workflow));
  }

  /** Requests an execution of a run. */
  readonly wake = async (ref: RunRef, reason: string): Promise<void> => {
    const key = keyOfRun(ref, this.#options.cluster);
    await this.of(ref.workflow).request(key, { kind: "signal", reason });
  };

  /** Requests a controller's key because a run has ended. */
  readonly notify = async (text: string, ref: RunRef): Promise<void> => {
    const key = parseKey(text);
    const by = `run ${formatRunId(ref, this.#options.cluster)}`;
    const trigger = { kind: "signal", by, reason: "the run has ended" } as const;
    await this.#open(key.controller).request(key, trigger);
  };

  /** Returns true if the object of a controller's key was missing at its last attempt. */
  readonly isObjectGone = async (text: string): Promise<boolean> => {
    const key = parseKey(text);
    const state = await this.#open(key.controller).getKey(key);
    return state === undefined || (state.phase === "idle" && state.lastOutcome === "gone");
  };

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }

  #open(controller: string): WorkQueue {
    const options = { ...this.#options, controller, pumps: this.#pumps };
    const queue = this.#queues.get(controller) ?? createWorkQueue(options);
    this.#queues.set(controller, queue);
    return queue;
  }
}
