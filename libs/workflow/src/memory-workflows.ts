import { defined, parseKey } from "@konverge/core";
import type { WorkQueue } from "@konverge/queue";
import { cancelEffectOf } from "./cancel-effect.ts";
import { createChildStarter } from "./create-child-starter.ts";
import type { ClusterAccess } from "./define/cluster-access.ts";
import type { AnyWorkflow } from "./define/define-workflow.ts";
import {
  formatRunId,
  keyOfRun,
  queueOfWorkflow,
  workflowOf,
  type RunRef,
} from "./define/run-ref.ts";
import { cancelRun } from "./execution/cancel-run.ts";
import { startRunWorker, type RunWorkerOptions } from "./execution/run-worker.ts";
import { requestRun } from "./request-run.ts";
import { refusal } from "./store/run-refusal.ts";
import type { RunHistory } from "./store/run-history.ts";
import type { RunView, StepRecord } from "./store/run-record.ts";
import type { RunStore } from "./store/run-store.ts";
import { sendSignal } from "./store/send-signal.ts";
import { updateSignal, updateSignalId } from "./store/run-updates.ts";
import { KindWatch } from "./waits/kind-watch.ts";
import type { WaitIndex } from "./waits/wait-index.ts";
import type { SignalMessage, Workflows } from "./workflows.ts";
import { storeOf } from "./testing/memory-run-store.ts";
import { MemoryRuns } from "./testing/memory-runs.ts";
import { createMemoryWaitIndex } from "./testing/memory-wait-index.ts";

export interface MemoryWorkflowsOptions {
  readonly cluster: string;
  /** Epoch ms. */
  readonly now: () => number;
}

/** A process that starts or executes runs. */
export interface MemoryRunProcess extends Pick<
  RunWorkerOptions,
  "aroundBody" | "onError" | "onLog" | "repeat"
> {
  readonly name: string;
  /** Opens the queue of a controller, or of a workflow. */
  readonly queueOf: (queue: string) => WorkQueue;
  /** Returns the store as the process uses it. */
  readonly storeOf: (store: RunStore) => RunStore;
}

/** The runs of one process. */
export type ProcessRuns = Pick<Workflows, "cancel" | "get" | "signal" | "start" | "update"> & {
  /** Executes runs. */
  work(workflows: readonly AnyWorkflow[], clusters: ClusterAccess): void;
  /** Starts the watches of the kinds that runs wait for. */
  watchKinds(clusters: ClusterAccess): Promise<void>;
};

/** A run and its records. */
export interface MemoryRun extends RunView {
  readonly steps: ReadonlyMap<string, StepRecord>;
}

const CONCURRENCY = 16;

/**
 * The runs of a simulation in memory, with the execution of production. They are shared by all processes, as in Redis. Values are
 * not encoded, and schedules start no runs.
 */
export class MemoryWorkflows {
  readonly #options: MemoryWorkflowsOptions;
  readonly #runs: MemoryRuns;
  readonly #store: RunStore;
  readonly #waits: WaitIndex;

  constructor(options: MemoryWorkflowsOptions) {
    this.#options = options;
    this.#runs = new MemoryRuns({ now: options.now });
    this.#store = storeOf(this.#runs);
    this.#waits = createMemoryWaitIndex(this.#runs);
  }

  /** Returns the runs of a workflow, oldest first. */
  of(workflow: string): MemoryRun[] {
    const runs = this.#runs.of(workflow).toReversed();
    return runs.map(({ view, steps }) => ({ ...view, steps }));
  }

  viewOf(ref: RunRef): RunView | undefined {
    return this.#runs.find(ref)?.view;
  }

  history(ref: RunRef): Promise<RunHistory | undefined> {
    return this.#store.history(ref);
  }

  open(process: MemoryRunProcess): ProcessRuns {
    return new MemoryProcessRuns(process, {
      ...this.#options,
      store: process.storeOf(this.#store),
      waits: this.#waits,
    });
  }
}

class MemoryProcessRuns implements ProcessRuns {
  readonly #process: MemoryRunProcess;
  readonly #cluster: string;
  readonly #store: RunStore;
  readonly #waits: WaitIndex;
  readonly #watched = new Set<string>();

  constructor(
    process: MemoryRunProcess,
    {
      cluster,
      store,
      waits,
    }: MemoryWorkflowsOptions & { readonly store: RunStore; readonly waits: WaitIndex },
  ) {
    this.#process = process;
    this.#cluster = cluster;
    this.#store = store;
    this.#waits = waits;
  }

  readonly #wake = async (ref: RunRef, reason: string): Promise<void> => {
    const queue = this.#process.queueOf(queueOfWorkflow(workflowOf(ref.workflow)));
    await queue.request(keyOfRun(ref, this.#cluster), { kind: "signal", reason });
  };

  readonly #notify = async (text: string, ref: RunRef): Promise<void> => {
    const key = parseKey(text);
    const by = `run ${formatRunId(ref, this.#cluster)}`;
    const trigger = { kind: "signal", by, reason: "the run has ended" } as const;
    await this.#process.queueOf(key.controller).request(key, trigger);
  };

  start: Workflows["start"] = (workflow, input, options) => {
    const requester = { store: this.#store, wake: this.#wake, plainInput: async () => input };
    return requestRun(requester, workflow, { ...options, input });
  };

  get(ref: RunRef): Promise<RunView | undefined> {
    return this.#store.get(ref);
  }

  async signal(
    ref: RunRef,
    name: string,
    { payload, by, id = crypto.randomUUID() }: SignalMessage = {},
  ): Promise<void> {
    await sendSignal(this.#store, this.#wake, ref, { name, id, payload, by });
  }

  async update(
    ref: RunRef,
    name: string,
    { id = crypto.randomUUID(), ...message }: SignalMessage = {},
  ): Promise<{ readonly id: string }> {
    await this.signal(ref, updateSignal(name), { ...message, id: updateSignalId(id) });
    return { id };
  }

  cancel: Workflows["cancel"] = async (ref, request = {}) => {
    const canceller = { store: this.#store, wake: this.#wake, notify: this.#notify };
    const { answer, run } = await cancelRun(canceller, ref, request, { resumes: true });
    if (answer === "ended" || answer === "missing") throw refusal(ref, answer);
    return cancelEffectOf(answer, run);
  };

  work(workflows: readonly AnyWorkflow[], clusters: ClusterAccess): void {
    const { name, queueOf, onError, onLog, repeat, aroundBody } = this.#process;
    const store = this.#store;
    const waker = { wake: this.#wake, notify: this.#notify };
    for (const workflow of workflows) {
      startRunWorker({
        store,
        // An attempt whose claim is rejected has lost its lease.
        queue: { ...queueOf(queueOfWorkflow(workflow.name)), getKey: async () => undefined },
        workflow,
        ...waker,
        abandon: async () => undefined,
        isObjectGone: async () => false,
        startChild: createChildStarter(store, waker),
        workerId: name,
        concurrency: CONCURRENCY,
        clusters,
        onError,
        ...defined({ onLog, repeat, aroundBody }),
      });
    }
  }

  async watchKinds(clusters: ClusterAccess): Promise<void> {
    for (const kind of await this.#waits.kinds()) {
      if (this.#watched.has(kind)) continue;
      this.#watched.add(kind);
      void new KindWatch({
        kind,
        client: () => clusters.client(clusters.home),
        namespaces: undefined,
        index: this.#waits,
        wake: this.#wake,
        onError: this.#process.onError,
      });
    }
  }
}
