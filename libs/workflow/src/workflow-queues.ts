import { defined, parseKey } from "@konverge/core";
import {
  createWorkQueue,
  QueueProcess,
  type WorkQueue,
  type WorkQueueOptions,
} from "@konverge/queue";
import type { RunTracing } from "./journal/run-tracing.ts";
import {
  formatRunId,
  keyOfRun,
  queueOfWorkflow,
  workflowOf,
  type RunRef,
} from "./define/run-ref.ts";

type QueueOptions = Omit<WorkQueueOptions, "controller" | "process" | "observe"> & {
  readonly tracing?: RunTracing;
};

/** The queues of a cluster's workflows and controllers, opened on first use. */
export class WorkflowQueues {
  readonly #options: Omit<WorkQueueOptions, "controller" | "process">;
  readonly #process: QueueProcess;
  readonly #queues = new Map<string, WorkQueue>();

  constructor({ tracing, ...options }: QueueOptions) {
    this.#options = { ...options, ...(tracing && { observe: observeWith(tracing) }) };
    this.#process = new QueueProcess(options.redis);
  }

  of(workflow: string): WorkQueue {
    return this.#open(queueOfWorkflow(workflowOf(workflow)));
  }

  /** Requests an execution of a run. */
  readonly wake = async (ref: RunRef, reason: string, traceparent?: string): Promise<void> => {
    const key = keyOfRun(ref, this.#options.cluster);
    const trigger = { kind: "signal", reason, ...defined({ traceparent }) } as const;
    await this.of(ref.workflow).request(key, trigger);
  };

  /** Ends the lease of an execution whose worker counts as lost. */
  readonly abandon = async (ref: RunRef, lease: number): Promise<boolean> =>
    await this.of(ref.workflow).abandon(keyOfRun(ref, this.#options.cluster), lease);

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
    const options = { ...this.#options, controller, process: this.#process };
    const queue = this.#queues.get(controller) ?? createWorkQueue(options);
    this.#queues.set(controller, queue);
    return queue;
  }
}

/** Traces requests of callers. Those of timers have no trace to belong to. */
function observeWith(tracing: RunTracing): NonNullable<WorkQueueOptions["observe"]> {
  return (key, trigger) => {
    if (trigger.kind === "schedule") return { ended: () => undefined };
    const span = tracing.startRequest(key, trigger);
    return { traceparent: span.traceparent, ended: (result) => span.end(result) };
  };
}
