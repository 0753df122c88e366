import {
  defined,
  findLimitIssues,
  invalidConfig,
  KonvergeError,
  toMs,
  type Duration,
  type Limits,
  type NamedLimits,
  type PayloadCodec,
} from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import { cancelRun } from "../execution/cancel-run.ts";
import type { ChildStarter } from "../execution/await-child.ts";
import type { ClusterAccess } from "../define/cluster-access.ts";
import type { AnyWorkflow, Workflow } from "../define/define-workflow.ts";
import {
  runExecution,
  type ExecutionEnd,
  type ExecutionOptions,
} from "../execution/run-execution.ts";
import type { OnExisting } from "../define/on-existing.ts";
import { terminateRun } from "../execution/terminate-run.ts";
import { startRun } from "../store/start-run.ts";
import { jsonCopy } from "../define/json-value.ts";
import { retryRun, type RetryRunOptions } from "../store/retry-run.ts";
import type { NewRun } from "../store/run-actions.ts";
import { checkJson } from "../define/check-json.ts";
import { childIdOf, roundIdOf, type RunRef } from "../define/run-ref.ts";
import {
  isEndStatus,
  type CancelRequest,
  type LogLine,
  type RunView,
  type StepRecord,
} from "../store/run-record.ts";
import { heldOfRecords } from "../store/held-of-records.ts";
import type { RunHistory } from "../store/run-history.ts";
import type { Held, Leave } from "../store/run-journal-store.ts";
import { updateSignal, updateSignalId } from "../store/run-updates.ts";
import { refusal } from "../store/run-refusal.ts";
import { sendSignal } from "../store/send-signal.ts";
import type { RunStore } from "../store/run-store.ts";
import type { Schedule } from "../schedules/define-schedule.ts";
import type { ScheduleStarts } from "../schedules/open-schedules.ts";
import type { BackfillOptions, ScheduleDetail, TriggerOptions } from "../schedules/schedules.ts";
import { withCodec } from "../codec/coded-run-store.ts";
import { MemoryLimits } from "./memory-limits.ts";
import { createMemoryRunStore } from "./memory-run-store.ts";
import { TestExecution } from "./test-execution.ts";
import { runAt, TestSchedules } from "./test-schedules.ts";
import { CrashError, TestFaults, type TestHeartbeat } from "./test-faults.ts";

/** Real time in ms. A test waits for it, and its steps take no time. */
const STALL_TIMEOUT_MS = 2_000;
/** Most executions after one event; a run that needs more would never settle. */
const MAX_EXECUTIONS = 10_000;

/** The options of {@link testWorkflow}. */
export interface TestWorkflowOptions {
  /** The clock at the start, epoch ms. Default 0. */
  readonly startMs?: number;
  /** Of the run, for `startOther`. Default: none. */
  readonly key?: string;
  /** Workflows that `w.child` may start. */
  readonly children?: readonly AnyWorkflow[];
  /**
   * Ends the execution after each record, so that the function is replayed after every step. Reveals code between steps that
   * is not deterministic. Default false.
   */
  readonly replayEveryStep?: boolean;
  /** The API server of the cluster `default`, which is the run's cluster. Default: none; Kubernetes calls are rejected. */
  readonly kube?: KubeClient;
  /** Several API servers, instead of `kube`. */
  readonly clusters?: ClusterAccess;
  /** Encodes the values of the run, as in production. Default: none. */
  readonly codec?: PayloadCodec;
  /** The limits of steps, as in the configuration. Default: none; steps with a limit are rejected. */
  readonly limits?: NamedLimits;
}

/** The options of `retry` of a {@link TestRun}. */
export type TestRetryOptions = Pick<RetryRunOptions, "fromFailed" | "skipUndo">;

/** A child of a run in memory. Every call finds the child by its step, after everything has settled. @throws Error without a child */
export interface TestChild {
  /** Returns the run of the child. */
  run(): Promise<RunView>;
  /** Returns its records by name. */
  steps(): Promise<ReadonlyMap<string, StepRecord>>;
  /** Sends a signal to the child. Returns its run. */
  signal(name: string, payload?: unknown): Promise<RunView>;
  /** Requests the cancellation of the child. Returns its run. */
  cancel(): Promise<RunView>;
  /** Returns a child of the child, by the name of its step. */
  child(step: string): TestChild;
}

/** A schedule whose runs start when the clock of the test reaches their times. It follows the rules of production. */
export interface TestSchedule {
  /** Returns the schedule with its next times, after everything has settled. */
  get(): Promise<ScheduleDetail>;
  /** Returns its runs in the order of their starts, including those of triggers and backfills. */
  runs(): Promise<readonly RunView[]>;
  /** Returns one of its runs by its index in `runs`. Default: the last. The calls of the result throw if there is no such run. */
  run(index?: number): TestChild;
  /** Pauses the schedule. The times in between are skipped. */
  pause(): Promise<void>;
  /** Continues with the next time. */
  resume(): Promise<void>;
  /** Starts a run now, even if the schedule is paused. @throws KonvergeError `queue_full` */
  trigger(options?: Pick<TriggerOptions, "overlap">): Promise<RunView>;
  /** Starts the runs of past times that have none. @throws KonvergeError `invalid_request`, `queue_full` */
  backfill(options: Pick<BackfillOptions, "fromMs" | "toMs" | "overlap">): Promise<void>;
}

/**
 * A run in memory with a manual clock. Every call resolves when the run and its children wait or have ended. It rejects if the
 * run has ended without reaching a step named by `failStep`, `crashAfter`, `crashIn` or `crashAtHeartbeat`.
 */
export interface TestRun {
  /** Returns the run. */
  run(): Promise<RunView>;
  /** Returns the records by name. */
  steps(): Promise<ReadonlyMap<string, StepRecord>>;
  /** Returns what `konverge run export` writes of a run, for `replay`. */
  history(): Promise<RunHistory>;
  /** Steps and undos whose body was started, in order. */
  readonly bodies: readonly string[];
  /** The heartbeats of bodies, in order. Each is stored at once. */
  readonly heartbeats: readonly TestHeartbeat[];
  /** Runs until everything waits, and rechecks the awaited objects. The first call of any kind does it too. */
  settle(): Promise<RunView>;
  /** Advances the clock, and stops at each time at which a run continues. */
  advance(duration: Duration): Promise<RunView>;
  /**
   * Advances the clock while no worker runs: during this time, no run continues and no schedule starts a run.
   * @throws Error while a body is held
   */
  outage(duration: Duration): Promise<RunView>;
  /**
   * Starts the runs of a schedule from now on, in addition to the run of this test. The first call that settles registers the
   * schedule, as a worker does; its workflow is then part of the test.
   * @throws Error for a second schedule with its name
   */
  schedule(schedule: Schedule): TestSchedule;
  /** Sends a signal to the run. */
  signal(name: string, payload?: unknown): Promise<RunView>;
  /** Returns the log of the run. */
  logs(): Promise<readonly LogLine[]>;
  /** Sends an update to the run. Returns the answer. @throws Error if the run refuses it or does not handle it now */
  update(name: string, payload?: unknown): Promise<unknown>;
  /** Requests the cancellation of the run. A paused run is resumed for its undo. */
  cancel(): Promise<RunView>;
  /** Pauses the run. While a body is held, it is `pausing`. */
  pause(): Promise<RunView>;
  /** Ends the pause of the run. */
  resume(): Promise<RunView>;
  /** Returns a child of the run, by the name of its step. */
  child(step: string): TestChild;
  /**
   * Retries the run as an operator does. Without `fromFailed`, the calls of this object then concern the new run.
   * @throws KonvergeError as the HTTP API
   */
  retry(options?: TestRetryOptions): Promise<RunView>;
  /**
   * Starts another run of the workflow with the key of this one, which must have a `key`. Returns the run that has it: the new one,
   * or with `attach` the one before.
   * @throws KonvergeError `run_exists`, `queue_full`
   */
  startOther(input: unknown, options?: { readonly onExisting?: OnExisting }): Promise<TestChild>;
  /**
   * Replaces the code of the run or of a child. Later executions use it, on the same records. A blocked run is rechecked after a
   * minute, as in production.
   * @throws Error for a workflow with another name
   */
  deploy(workflow: AnyWorkflow): void;
  /** Makes the next `times` attempts of the step throw `error` instead of running its body. Default 1. */
  failStep(step: string, error: Error, options?: { readonly times?: number }): void;
  /** Makes the execution crash once, right after the record of the step. */
  crashAfter(step: string): void;
  /** Makes the execution crash once, after the body of the step and before its record. */
  crashIn(step: string): void;
  /** Makes the execution crash once, at the `nth` heartbeat of the step from now. Default 1. */
  crashAtHeartbeat(step: string, nth?: number): void;
  /**
   * Holds the body of a step at its begin, so that signals, `advance` and `cancel` arrive while it is at work. Calls then resolve
   * when everything else waits.
   */
  holdStep(step: string): void;
  /** Lets a held body continue. @throws Error if the step is not held */
  releaseStep(step: string): Promise<RunView>;
  /**
   * Replays the function on the recorded steps.
   * @throws Error naming the new steps if the function is not deterministic
   */
  replay(): Promise<void>;
}

/**
 * Starts a run without Redis, to test the logic of a workflow. Timeouts of bodies use real time; all other waits end when the
 * test advances the clock, and delays between attempts end at once.
 *
 * @example
 * const t = testWorkflow(rollout, { name: "web" });
 * t.crashAfter("create");
 * await t.advance("30m");
 * expect((await t.signal("approve", { by: "ann" })).status).toBe("done");
 */
export function testWorkflow<I>(
  workflow: Workflow<I>,
  input: NoInfer<I>,
  options: TestWorkflowOptions = {},
): TestRun {
  return new MemoryTestRun(workflow, input, options);
}

class MemoryTestRun implements TestRun {
  #workflow: AnyWorkflow;
  /** The run, or the latest retry of it. */
  #ref: RunRef;
  readonly #definitions: Map<string, AnyWorkflow>;
  readonly #clusters: ClusterAccess | undefined;
  readonly #limits: Limits | undefined;
  readonly #faults = new TestFaults();
  /** As a caller uses it. */
  readonly #store: RunStore;
  /** As a worker uses it. */
  readonly #workerStore: RunStore;
  readonly #faultyStore: RunStore;
  readonly #started: Promise<void>;
  readonly #schedules: TestSchedules;
  readonly #woken: RunRef[] = [];
  /** Runs that wait for objects. */
  readonly #watching = new Map<string, RunRef>();
  /** Executions in which only held bodies are at work. */
  readonly #running = new Map<string, TestExecution>();
  readonly #dueAtMs = new Map<string, { readonly ref: RunRef; readonly atMs: number }>();
  #nowMs: number;
  #lease = 0;
  #signals = 0;
  #others = 0;
  readonly #wakeLater = async (ref: RunRef): Promise<void> => void this.#woken.push(ref);

  constructor(workflow: AnyWorkflow, input: unknown, options: TestWorkflowOptions) {
    const { startMs = 0, children = [], replayEveryStep = false, kube } = options;
    this.#workflow = workflow;
    this.#ref = { workflow: workflow.name, id: "test" };
    this.#definitions = new Map([workflow, ...children].map((each) => [each.name, each]));
    this.#clusters = options.clusters ?? (kube === undefined ? undefined : onlyCluster(kube));
    this.#nowMs = startMs;
    this.#limits = this.#openLimits(options.limits);
    const memory = createMemoryRunStore({ now: () => this.#nowMs });
    const { codec } = options;
    this.#store = withCodec(memory, { codec, executes: false });
    const store = withCodec(memory, { codec, executes: true });
    this.#workerStore = store;
    this.#faultyStore = {
      ...store,
      commit: this.#faults.commitOf(store, replayEveryStep),
      leave: async (held, leave, output) => {
        this.#noteWatching(held, leave);
        return await store.leave(held, leave, output);
      },
    };
    const starts: ScheduleStarts = {
      store: this.#store,
      wake: this.#wakeLater,
      terminate: (ref, request) => this.#terminate(ref, request),
    };
    this.#schedules = new TestSchedules({ starts, now: () => this.#nowMs, codec });
    this.#started = this.#start(input, options.key);
    // Each call of the test throws it.
    this.#started.catch(() => undefined);
  }

  get bodies(): readonly string[] {
    return this.#faults.bodies;
  }

  get heartbeats(): readonly TestHeartbeat[] {
    return this.#faults.heartbeats;
  }

  async run(): Promise<RunView> {
    await this.#started;
    return await this.#view();
  }

  steps(): Promise<ReadonlyMap<string, StepRecord>> {
    return this.#store.steps(this.#ref);
  }

  async history(): Promise<RunHistory> {
    await this.#started;
    const history = await this.#store.history(this.#ref);
    if (history === undefined) throw new Error("the run does not exist");
    return history;
  }

  async settle(): Promise<RunView> {
    await this.#started;
    // A watch would wake them.
    this.#woken.push(...this.#watching.values());
    for (const execution of this.#running.values()) execution.wake();
    await this.#executeWoken();
    return await this.#settled();
  }

  async advance(duration: Duration): Promise<RunView> {
    await this.settle();
    return await this.#advanceTo(this.#nowMs + toMs(duration, "duration"));
  }

  async outage(duration: Duration): Promise<RunView> {
    await this.settle();
    if (this.#running.size > 0) throw new Error("a body is held; call releaseStep before outage");
    this.#nowMs += toMs(duration, "duration");
    return await this.#advanceTo(this.#nowMs);
  }

  schedule(schedule: Schedule): TestSchedule {
    this.#schedules.add(schedule);
    const { name, workflow } = schedule;
    if (!this.#definitions.has(workflow.name)) this.#definitions.set(workflow.name, workflow);
    const { control } = this.#schedules;
    const refs = () => this.#schedules.runsOf(schedule);
    const settled = async <T>(call: () => Promise<T>): Promise<T> => {
      await this.settle();
      const result = await call();
      await this.settle();
      return result;
    };
    return {
      get: async () => await settled(async () => await control.get(name)),
      runs: async () =>
        await settled(async () => await Promise.all(refs().map((ref) => this.#viewOf(ref)))),
      run: (index = -1) => this.#handleOf(async () => runAt(refs(), index, schedule)),
      pause: async () => await settled(async () => await control.pause(name)),
      resume: async () => await settled(async () => await control.resume(name)),
      trigger: async (options) => {
        const { id } = await settled(async () => await control.trigger(name, options));
        this.#schedules.note(name, id);
        return await this.#viewOf({ workflow: workflow.name, id });
      },
      backfill: async (options) => {
        const { times } = await settled(async () => await control.backfill(name, options));
        for (const { run } of times) this.#schedules.note(name, run);
      },
    };
  }

  async signal(name: string, payload?: unknown): Promise<RunView> {
    await this.settle();
    this.#signals += 1;
    return await this.#signal(this.#ref, { name, id: String(this.#signals), payload });
  }

  logs(): Promise<readonly LogLine[]> {
    return this.#store.logs(this.#ref);
  }

  async update(name: string, payload?: unknown): Promise<unknown> {
    await this.settle();
    this.#signals += 1;
    const id = String(this.#signals);
    const signal = { name: updateSignal(name), id: updateSignalId(id), payload };
    await this.#signal(this.#ref, signal);
    const answer = await this.#store.answerTo(this.#ref, id);
    if (answer === undefined) throw new Error(`the run does not handle update "${name}" now`);
    if (answer.kind === "refused") {
      const { message, issues } = answer.refusal;
      throw new KonvergeError("invalid_request", message, { issues });
    }
    return answer.value;
  }

  async cancel(): Promise<RunView> {
    await this.settle();
    return await this.#wake(await this.#cancel(this.#ref));
  }

  async pause(): Promise<RunView> {
    await this.settle();
    const { workflow, id } = this.#ref;
    const [answer = "missing"] = await this.#store.pause(workflow, [id], { request: {} });
    return await this.#wake(answer);
  }

  async resume(): Promise<RunView> {
    await this.settle();
    const { workflow, id } = this.#ref;
    const [answer = "missing"] = await this.#store.resume(workflow, [id]);
    return await this.#wake(answer);
  }

  child(step: string): TestChild {
    return this.#childOf(async () => this.#ref, step);
  }

  async retry(options: TestRetryOptions = {}): Promise<RunView> {
    await this.settle();
    const { version } = this.#workflow;
    this.#ref = await retryRun(
      {
        store: this.#store,
        start: async (run) => void (await startRun(this.#store, this.#wakeLater, run)),
        wake: this.#wakeLater,
      },
      this.#ref,
      { version, ...options },
    );
    return await this.settle();
  }

  async startOther(
    input: unknown,
    { onExisting }: { readonly onExisting?: OnExisting } = {},
  ): Promise<TestChild> {
    const { key } = await this.settle();
    if (key === undefined) throw new Error("the run has no key; pass key to testWorkflow");
    this.#others += 1;
    const id = `other-${this.#others}`;
    const run = { ...this.#newRun(id, input), key, ...defined({ onExisting }) };
    const started = await startRun(this.#store, this.#wakeLater, run);
    await this.settle();
    return this.#handleOf(async () => ({ workflow: this.#workflow.name, id: started.id }));
  }

  deploy(workflow: AnyWorkflow): void {
    const { name } = workflow;
    if (!this.#definitions.has(name)) {
      const known = [...this.#definitions.keys()].join(", ");
      throw new Error(`workflow "${name}" is not part of this test; its workflows: ${known}`);
    }
    this.#definitions.set(name, workflow);
    if (name === this.#workflow.name) this.#workflow = workflow;
  }

  failStep(step: string, error: Error, { times = 1 }: { readonly times?: number } = {}): void {
    this.#faults.failStep(step, error, times);
  }

  crashAfter(step: string): void {
    this.#faults.crashAfter(step);
  }

  crashIn(step: string): void {
    this.#faults.crashIn(step);
  }

  crashAtHeartbeat(step: string, nth = 1): void {
    this.#faults.crashAtHeartbeat(step, nth);
  }

  holdStep(step: string): void {
    this.#faults.holdStep(step);
  }

  async releaseStep(step: string): Promise<RunView> {
    this.#faults.releaseStep(step);
    return await this.settle();
  }

  async replay(): Promise<void> {
    const run = await this.settle();
    if (this.#running.size > 0) throw new Error("a body is held; call releaseStep before replay");
    const before = this.bodies.length;
    const { parsedInput } = await this.history();
    const execution = new TestExecution(this.#ref, () => this.#nowMs);
    const held = heldOfRecords({
      ...this.#ref,
      run,
      steps: await this.steps(),
      nowMs: this.#nowMs,
      ...defined({ parsedInput }),
    });
    const end = await this.#runOn(readOnly(this.#workerStore), this.#workflow, execution, held);
    const again = this.bodies.slice(before);
    if (again.length > 0) throw new Error(`the replay executed ${again.join(", ")} again`);
    if (end.kind === "error") throw end.error;
    if (end.kind === "blocked" && run.status !== "blocked") throw new Error(end.reason);
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

  async #start(input: unknown, key: string | undefined): Promise<void> {
    await this.#store.start({ ...this.#newRun(this.#ref.id, input), ...defined({ key }) });
    this.#woken.push(this.#ref);
  }

  #newRun(id: string, input: unknown): NewRun {
    const { name, version } = this.#workflow;
    checkJson(input, `the input of "${name}"`);
    return { workflow: name, id, version, input: jsonCopy(input ?? null) };
  }

  async #advanceTo(untilMs: number): Promise<RunView> {
    for (;;) {
      const atMs = this.#nextAtMs();
      if (atMs > untilMs) break;
      this.#nowMs = Math.max(this.#nowMs, atMs);
      for (const due of this.#dueAtMs.values()) if (due.atMs <= atMs) this.#woken.push(due.ref);
      for (const execution of this.#running.values()) execution.fireTimers();
      await this.#executeWoken();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
    return await this.#settled();
  }

  #childOf(parent: () => Promise<RunRef>, step: string): TestChild {
    return this.#handleOf(async () => await this.#findChild(await parent(), step));
  }

  #handleOf(refOf: () => Promise<RunRef>): TestChild {
    const find = async () => {
      await this.settle();
      return await refOf();
    };
    return {
      run: async () => await this.#viewOf(await find()),
      steps: async () => await this.#store.steps(await find()),
      signal: async (name, payload) => {
        const ref = await find();
        this.#signals += 1;
        await this.#signal(ref, { name, id: String(this.#signals), payload });
        return await this.#viewOf(ref);
      },
      cancel: async () => {
        const ref = await find();
        await this.#wake(await this.#cancel(ref), ref);
        return await this.#viewOf(ref);
      },
      child: (inner) => this.#childOf(find, inner),
    };
  }

  async #findChild(parent: RunRef, step: string): Promise<RunRef> {
    const { round } = (await this.#store.get(parent)) ?? {};
    const id = childIdOf(roundIdOf({ id: parent.id, ...defined({ round }) }), step);
    for (const workflow of this.#definitions.keys()) {
      if ((await this.#store.get({ workflow, id })) !== undefined) return { workflow, id };
    }
    throw new Error(`run ${parent.id} of "${parent.workflow}" has not started a child "${step}"`);
  }

  /** By the rules of production. */
  async #signal(ref: RunRef, signal: Parameters<typeof sendSignal>[3]): Promise<RunView> {
    await sendSignal(this.#store, this.#wakeLater, ref, signal);
    return await this.settle();
  }

  async #cancel(ref: RunRef): Promise<string> {
    const wake = async (woken: RunRef) => void this.#woken.push(woken);
    const canceller = { store: this.#store, wake, notify: async () => undefined };
    return (await cancelRun(canceller, ref, {}, { resumes: true })).answer;
  }

  async #terminate(ref: RunRef, request: CancelRequest): Promise<void> {
    const waker = { wake: this.#wakeLater, notify: async () => undefined };
    const answer = await terminateRun({ store: this.#store, ...waker }, ref, request);
    if (answer === "terminated") this.#running.get(textOfRef(ref))?.fence();
  }

  async #wake(result: string, ref = this.#ref): Promise<RunView> {
    if (result === "ended" || result === "missing") throw refusal(ref, result);
    this.#woken.push(ref);
    return await this.settle();
  }

  async #view(): Promise<RunView> {
    return await this.#viewOf(this.#ref);
  }

  async #viewOf(ref: RunRef): Promise<RunView> {
    const run = await this.#store.get(ref);
    if (run === undefined) throw new Error(`run ${ref.id} does not exist`);
    return run;
  }

  async #settled(): Promise<RunView> {
    const run = await this.#view();
    if (isEndStatus(run.status)) this.#faults.assertMet((await this.steps()).keys());
    return run;
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
    return Math.min(...runs, ...timers, this.#schedules.dueAtMs);
  }

  /** Executes the woken runs, then starts due ones: a run that ends at a time of its schedule ends before the next one starts. */
  async #executeWoken(): Promise<void> {
    do {
      await this.#executeAll();
      await this.#schedules.startDue();
    } while (this.#woken.length > 0);
  }

  async #executeAll(): Promise<void> {
    // A held body may have been released, or an event may have reached its execution.
    for (const execution of this.#running.values()) await this.#rest(execution);
    for (let count = 0; this.#woken.length > 0; count += 1) {
      if (count > MAX_EXECUTIONS) throw new Error("the run does not settle");
      const ref = this.#woken.shift() ?? this.#ref;
      const running = this.#running.get(textOfRef(ref));
      running?.wake();
      const execution = running ?? (await this.#begin(ref));
      if (execution !== undefined) await this.#rest(execution);
    }
  }

  async #begin(ref: RunRef): Promise<TestExecution | undefined> {
    this.#lease += 1;
    const lease = this.#lease;
    const definition = this.#definitions.get(ref.workflow);
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
        if (this.#faults.dieAtHeartbeat({ step, progress })) {
          execution.crash(`crash at a heartbeat of ${step}`);
        }
      },
      beforeBody: (step) => {
        const released = this.#faults.beforeBody(step);
        return released && ((attempt) => execution.hold(released, attempt));
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
        if (!this.#definitions.has(run.workflow)) {
          throw new KonvergeError(
            "invalid_config",
            `workflow "${run.workflow}" is missing in children of testWorkflow; add it`,
          );
        }
        return await startRun(this.#workerStore, this.#wakeLater, run);
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
