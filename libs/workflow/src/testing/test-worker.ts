import {
  defined,
  findLimitIssues,
  invalidConfig,
  KonvergeError,
  type Limits,
  type NamedLimits,
} from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import type { ClusterAccess } from "../define/cluster-access.ts";
import type { AnyWorkflow } from "../define/define-workflow.ts";
import type { RunRef } from "../define/run-ref.ts";
import type { ChildStarter } from "../execution/await-child.ts";
import {
  runExecution,
  type ExecutionEnd,
  type ExecutionOptions,
} from "../execution/run-execution.ts";
import { terminateRun } from "../execution/terminate-run.ts";
import { startRun } from "../store/start-run.ts";
import type { CancelRequest } from "../store/run-record.ts";
import type { Held, Leave } from "../store/run-journal-store.ts";
import type { RunStore } from "../store/run-store.ts";
import { withCodec } from "../codec/coded-run-store.ts";
import { MemoryLimits } from "./memory-limits.ts";
import { createMemoryRunStore } from "./memory-run-store.ts";
import { TestExecution } from "./test-execution.ts";
import { CrashError, TestFaults } from "./test-faults.ts";
import type { TestWorkflowOptions } from "./test-run.ts";
import { TestSchedules } from "./test-schedules.ts";

/** Real time in ms. A test waits for it, and its steps take no time. */
const STALL_TIMEOUT_MS = 2_000;
/** Most executions after one event; a run that needs more would never settle. */
const MAX_EXECUTIONS = 10_000;

/** Executes the runs of a test in memory, one at a time, by a manual clock. */
export class TestWorker {
  readonly definitions: Map<string, AnyWorkflow>;
  readonly faults: TestFaults = new TestFaults();
  /** As a caller uses it. */
  readonly store: RunStore;
  readonly schedules: TestSchedules;
  readonly #clusters: ClusterAccess | undefined;
  readonly #limits: Limits | undefined;
  /** As a worker uses it. */
  readonly #workerStore: RunStore;
  readonly #faultyStore: RunStore;
  readonly #woken: RunRef[] = [];
  /** Runs that wait for objects. */
  readonly #watching = new Map<string, RunRef>();
  /** Executions in which only held bodies are at work. */
  readonly #running = new Map<string, TestExecution>();
  readonly #dueAtMs = new Map<string, { readonly ref: RunRef; readonly atMs: number }>();
  #nowMs: number;
  #lease = 0;
  readonly wakeLater: (ref: RunRef) => Promise<void> = async (ref) => this.wake(ref);

  constructor(workflow: AnyWorkflow, options: TestWorkflowOptions) {
    const { startMs = 0, children = [], replayEveryStep = false, kube, codec } = options;
    this.definitions = new Map([workflow, ...children].map((each) => [each.name, each]));
    this.#clusters = options.clusters ?? (kube === undefined ? undefined : onlyCluster(kube));
    this.#nowMs = startMs;
    this.#limits = this.#openLimits(options.limits);
    const memory = createMemoryRunStore({ now: () => this.#nowMs });
    this.store = withCodec(memory, { codec, executes: false });
    const store = withCodec(memory, { codec, executes: true });
    this.#workerStore = store;
    this.#faultyStore = {
      ...store,
      commit: this.faults.commitOf(store, replayEveryStep),
      leave: async (held, leave, output) => {
        this.#noteWatching(held, leave);
        return await store.leave(held, leave, output);
      },
    };
    const starts = {
      store: this.store,
      wake: this.wakeLater,
      terminate: (ref: RunRef, request: CancelRequest) => this.#terminate(ref, request),
    };
    this.schedules = new TestSchedules({ starts, now: () => this.#nowMs, codec });
  }

  /** The clock, epoch ms. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** True while a body is held. */
  get isHeld(): boolean {
    return this.#running.size > 0;
  }

  wake(ref: RunRef): void {
    this.#woken.push(ref);
  }

  /** Runs until everything waits, and rechecks the awaited objects. */
  async settle(): Promise<void> {
    // A watch would wake them.
    this.#woken.push(...this.#watching.values());
    for (const execution of this.#running.values()) execution.wake();
    await this.#executeWoken();
  }

  /** Advances the clock without executing anything. */
  skip(ms: number): void {
    this.#nowMs += ms;
  }

  /** Advances the clock, and stops at each time at which a run continues. */
  async advanceTo(untilMs: number): Promise<void> {
    for (;;) {
      const atMs = this.#nextAtMs();
      if (atMs > untilMs) break;
      this.#nowMs = Math.max(this.#nowMs, atMs);
      for (const due of this.#dueAtMs.values()) if (due.atMs <= atMs) this.#woken.push(due.ref);
      for (const execution of this.#running.values()) execution.fireTimers();
      await this.#executeWoken();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /**
   * Replays the code of a run on its recorded steps.
   * @throws Error if it would record or do anything
   */
  async replay(workflow: AnyWorkflow, held: Held): Promise<ExecutionEnd> {
    const execution = new TestExecution(held, () => this.#nowMs);
    return await this.#runOn(readOnly(this.#workerStore), workflow, execution, held);
  }

  async #terminate(ref: RunRef, request: CancelRequest): Promise<void> {
    const waker = { wake: this.wakeLater, notify: async () => undefined };
    const answer = await terminateRun({ store: this.store, ...waker }, ref, request);
    if (answer === "terminated") this.#running.get(textOfRef(ref))?.fence();
  }

  #noteWatching({ workflow, id }: RunRef, leave: Leave): void {
    const key = textOfRef({ workflow, id });
    const isWatching = leave.kind === "waiting" && (leave.objects ?? []).length > 0;
    if (isWatching) this.#watching.set(key, { workflow, id });
    else if (leave.kind !== "compensating") this.#watching.delete(key);
  }

  #nextAtMs(): number {
    const runs = [...this.#dueAtMs.values()].map(({ atMs }) => atMs);
    const timers = [...this.#running.values()].map(({ dueAtMs }) => dueAtMs);
    return Math.min(...runs, ...timers, this.schedules.dueAtMs);
  }

  /** Executes the woken runs, then starts due ones: a run that ends at a time of its schedule ends before the next one starts. */
  async #executeWoken(): Promise<void> {
    do {
      await this.#executeAll();
      await this.schedules.startDue();
    } while (this.#woken.length > 0);
  }

  async #executeAll(): Promise<void> {
    // A held body may have been released, or an event may have reached its execution.
    for (const execution of this.#running.values()) await this.#rest(execution);
    let count = 0;
    for (let ref = this.#woken.shift(); ref !== undefined; ref = this.#woken.shift()) {
      count += 1;
      if (count > MAX_EXECUTIONS) throw new Error("the run does not settle");
      const running = this.#running.get(textOfRef(ref));
      running?.wake();
      const execution = running ?? (await this.#begin(ref));
      if (execution !== undefined) await this.#rest(execution);
    }
  }

  async #begin(ref: RunRef): Promise<TestExecution | undefined> {
    this.#lease += 1;
    const lease = this.#lease;
    const definition = this.definitions.get(ref.workflow);
    const owner = String(lease);
    const held = await this.#workerStore.claim(ref, {
      lease,
      owner,
      ...defined({ code: definition }),
    });
    this.#dueAtMs.delete(textOfRef(ref));
    if (held.kind !== "held" || definition === undefined) return undefined;
    const execution = new TestExecution(ref, () => this.#nowMs);
    const store = {
      ...this.#faultyStore,
      commit: execution.crashing(async (...args) => await this.#faultyStore.commit(...args)),
    };
    execution.start(() => this.#runOn(store, definition, execution, held));
    this.#running.set(textOfRef(ref), execution);
    return execution;
  }

  /** Resolves when the execution has ended or is at rest. */
  async #rest(execution: TestExecution): Promise<void> {
    const end = await execution.rest();
    if (end === undefined) return;
    this.#running.delete(textOfRef(execution.ref));
    if (execution.missedWake) this.#woken.push(execution.ref);
    this.#follow(execution, end);
  }

  async #runOn(
    store: RunStore,
    workflow: AnyWorkflow,
    execution: TestExecution,
    held: Held,
  ): Promise<ExecutionEnd> {
    return await runExecution({
      store,
      workflow,
      held,
      ...execution.hooks,
      startChild: this.#children,
      clock: () => this.#nowMs,
      random: () => 0,
      stallTimeoutMs: STALL_TIMEOUT_MS,
      pause: async (ms) => {
        this.#nowMs += Math.ceil(ms);
      },
      beatEveryMs: 0,
      onBeat: (step, progress) => {
        if (this.faults.dieAtHeartbeat({ step, progress })) {
          execution.crash(`crash at a heartbeat of ${step}`);
        }
      },
      aroundBody: ({ step }, body) => {
        const released = this.faults.beforeBody(step);
        if (released === undefined) return body;
        return async (context) => {
          await execution.hold(released, context.signal);
          return await body(context);
        };
      },
      ...defined({ clusters: this.#clusters, permits: this.#permitsOf(held) }),
    });
  }

  #permitsOf({ workflow, id }: RunRef): ExecutionOptions["permits"] {
    return this.#limits && { limits: this.#limits, key: `${workflow} ${id}` };
  }

  get #children(): ChildStarter {
    return {
      start: async (run) => {
        if (!this.definitions.has(run.workflow)) {
          throw new KonvergeError(
            "invalid_config",
            `workflow "${run.workflow}" is missing in children of testWorkflow; add it`,
          );
        }
        return await startRun(this.#workerStore, this.wakeLater, run);
      },
      cancel: async (child, request) => {
        const answer = await this.#workerStore.cancel(child, request);
        if (answer === "requested" || answer === "pending") this.#woken.push(child);
      },
      terminate: (child, request) => this.#terminate(child, request),
      get: (child) => this.#workerStore.get(child),
      signal: async (run, signal) => {
        const stored = await this.#workerStore.signal(run, signal);
        if (stored === "stored" || stored === "duplicate") this.#woken.push(run);
        return stored;
      },
    };
  }

  #follow({ ref, hasStopped }: TestExecution, end: ExecutionEnd): void {
    switch (end.kind) {
      case "waiting":
      case "blocked":
        if (end.afterMs === undefined) return;
        this.#dueAtMs.set(textOfRef(ref), { ref, atMs: this.#nowMs + end.afterMs });
        return;
      case "continued":
        this.#woken.push(ref);
        return;
      case "ended":
        for (const follower of [
          end.followers.parent,
          end.followers.next,
          ...(end.followers.slotTo ?? []),
        ]) {
          if (follower !== undefined) this.#woken.push(follower);
        }
        return;
      case "error":
        if (!(end.error instanceof CrashError)) throw end.error;
        this.#woken.push(ref);
        return;
      case "lost":
        if (!hasStopped) throw new Error(`two executions of ${textOfRef(ref)} overlap in one test`);
        this.#woken.push(ref);
    }
  }

  #openLimits(limits: NamedLimits | undefined): Limits | undefined {
    if (limits === undefined) return undefined;
    const issues = findLimitIssues(limits);
    if (issues.length > 0) throw invalidConfig(issues);
    const wake = (waiter: string) => {
      const [workflow = "", id = ""] = waiter.split(" ");
      this.#woken.push({ workflow, id });
    };
    return new MemoryLimits({ limits, now: () => this.#nowMs, wake });
  }
}

function textOfRef({ workflow, id }: RunRef): string {
  return `${workflow}/${id}`;
}

/** A store for a replay, which must not record anything. */
function readOnly(store: RunStore): RunStore {
  return {
    ...store,
    commit: async (_, step) => {
      throw new Error(`the replay would record "${step}", which the run did not reach`);
    },
    note: async (_, __, { attempts }) => ({ attempts, untilMs: Infinity }),
    enter: async () => "entered",
    keepInput: async (_, input) => input,
    publish: async () => undefined,
    relabel: async () => undefined,
    appendLog: async () => undefined,
    watch: async () => undefined,
    holds: async () => true,
    leave: async () => ({}),
  };
}

function onlyCluster(kube: KubeClient): ClusterAccess {
  const home = "default";
  return {
    home,
    async client(name) {
      if (name === home) return kube;
      throw new KonvergeError(
        "invalid_request",
        `cluster "${name}" is not configured in this test; pass clusters instead of kube`,
      );
    },
  };
}
