import {
  defined,
  ensureError,
  formatKey,
  sleepMs,
  type Limits,
  type Outcome,
} from "@konverge/core";
import type { AttemptEnd, AttemptLease, QueueWorker, WorkQueue } from "@konverge/queue";
import type { ChildStarter } from "./await-child.ts";
import type { ClusterAccess } from "../define/cluster-access.ts";
import type { AnyWorkflow } from "../define/define-workflow.ts";
import { wakeFollowers } from "./wake-followers.ts";
import { runExecution, type ExecutionEnd, type ExecutionOptions } from "./run-execution.ts";
import { HandBack } from "./hand-back.ts";
import { followAbort } from "../journal/follow-abort.ts";
import { CancelRequests } from "../journal/cancel-requests.ts";
import { PauseState } from "../journal/pause-state.ts";
import type { RecordedStep, RunObserver } from "../journal/run-observer.ts";
import type { ExecutionSpan, RunTracing } from "../journal/run-tracing.ts";
import { WakeRounds } from "./wake-rounds.ts";
import { watchSilence, type Repeat } from "./watch-silence.ts";
import { runOfKey, spreadOf, type RunRef } from "../define/run-ref.ts";
import { SpreadSteps } from "./spread-steps.ts";
import {
  FencedError,
  type Claimed,
  type Held,
  type RunJournalStore,
} from "../store/run-journal-store.ts";
import type { KeptEnd, RunQueries } from "../store/run-queries.ts";
import type { SpreadInput } from "../store/spread-step.ts";
import type { LogLine, RunWarning } from "../store/run-record.ts";

/** Interval in which the signals of cancelled runs are aborted, in ms. */
const CANCEL_EVERY_MS = 1_000;
/** Interval in which the worker's code is announced, in ms. */
const ANNOUNCE_EVERY_MS = 5_000;
const SWEEP_EVERY_MS = 5_000;
/** Longest wait for the last of these rounds at the end, in ms. */
const LAST_ROUND_MS = 1_000;

export interface RunWorkerOptions {
  readonly store: RunJournalStore &
    Pick<
      RunQueries,
      "cancelling" | "fences" | "get" | "history" | "overdue" | "pausing" | "silent"
    >;
  readonly queue: WorkQueue;
  readonly workflow: AnyWorkflow;
  readonly wake: (ref: RunRef, reason: string) => Promise<void>;
  /** Ends the lease of an execution whose worker counts as lost. */
  readonly abandon: (ref: RunRef, lease: number) => Promise<unknown>;
  /** Requests a controller's key because a run has ended. */
  readonly notify: (key: string, run: RunRef) => Promise<void>;
  /** Returns true if the object of a controller's key is missing. */
  readonly isObjectGone: (key: string) => Promise<boolean>;
  readonly startChild: ChildStarter;
  readonly workerId: string;
  readonly concurrency: number;
  readonly clusters?: ClusterAccess;
  readonly limits?: Limits;
  readonly onError: (error: Error) => void;
  readonly observer?: RunObserver;
  readonly tracing?: RunTracing;
  readonly recordLimitBytes?: number;
  readonly recheckMs?: number;
  /** Interval in which runs with a lost wake-up are woken, in ms. Default 5 s. */
  readonly sweepEveryMs?: number;
  readonly onWarning?: (ref: RunRef, warning: RunWarning) => void;
  readonly onLog?: (ref: RunRef, line: LogLine) => void;
  /** Repeats a round. For simulations. Default: a timer. */
  readonly repeat?: Repeat;
  /** As for an execution. For simulations. Default: none. */
  readonly aroundBody?: (ref: RunRef, ...args: Parameters<AroundBody>) => ReturnType<AroundBody>;
}

type AroundBody = NonNullable<ExecutionOptions["aroundBody"]>;

/** An execution of this process. */
interface ActiveExecution {
  readonly epoch: number;
  readonly cancels: CancelRequests;
  readonly pauses: PauseState;
  readonly stop: AbortController;
}

/** Runs the executions of one workflow. Each is an attempt of the queue, with its lease, slot and record. */
export function startRunWorker(options: RunWorkerOptions): QueueWorker {
  return new RunWorker(options);
}

type Executed =
  | ExecutionEnd
  | Exclude<Claimed["kind"], "held" | "unfit">
  | Extract<Claimed, { kind: "unfit" }>;

class RunWorker implements QueueWorker {
  readonly #options: RunWorkerOptions;
  /** By run. */
  readonly #active = new Map<string, ActiveExecution>();
  readonly #spreads: SpreadSteps;
  readonly #handBack = new HandBack(Math.random);
  /** Other than the worker's id, which a restarted worker may have again. */
  readonly #instance = crypto.randomUUID();
  #isStopping = false;
  #isPaused = false;
  readonly #rounds: readonly (() => Promise<void>)[];
  readonly #wakeRounds: WakeRounds;
  readonly #worker: QueueWorker;

  constructor(options: RunWorkerOptions) {
    this.#options = options;
    const { store, workflow, queue, abandon, workerId, concurrency, onError } = options;
    const { sweepEveryMs = SWEEP_EVERY_MS, repeat = repeatByTimer } = options;
    this.#spreads = new SpreadSteps({ store, workflow: workflow.name });
    const watchedNames = [workflow.name, spreadOf(workflow.name)];
    this.#rounds = [
      repeat(() => this.#announce(), ANNOUNCE_EVERY_MS, onError),
      repeat(() => this.#interrupt(), CANCEL_EVERY_MS, onError),
      ...watchedNames.flatMap((name) => [
        repeat(() => this.#wakeOverdue(name), sweepEveryMs, onError),
        watchSilence({
          read: () => store.silent(name),
          abandon: (id, lease) => abandon({ workflow: name, id }, lease),
          onError,
          ...defined({ repeat: options.repeat }),
        }),
      ]),
    ];
    this.#wakeRounds = new WakeRounds({ read: (keys) => queue.waitingRequests(keys), onError });
    const handle = (attempt: AttemptLease) => this.#handle(attempt);
    this.#announce().catch((error: unknown) => onError(ensureError(error)));
    this.#worker = queue.work({ workerId, concurrency, handle, onError });
  }

  get active(): number {
    return this.#worker.active;
  }

  get finished(): number {
    return this.#worker.finished;
  }

  /** Other workers then block the runs that only this worker's code fits, instead of handing them back to it. */
  pause(): void {
    this.#worker.pause();
    this.#isPaused = true;
    void this.#withdraw();
  }

  resume(): void {
    this.#worker.resume();
    this.#isPaused = false;
    this.#announce().catch((error: unknown) => this.#options.onError(ensureError(error)));
  }

  async stop(options?: Parameters<QueueWorker["stop"]>[0]): Promise<void> {
    await Promise.all([this.#retract(), this.#worker.stop(options)]);
    await this.#endRounds();
  }

  async kill(): Promise<void> {
    await Promise.all([this.#retract(), this.#worker.kill()]);
    await this.#endRounds();
  }

  async #endRounds(): Promise<void> {
    await Promise.all([...this.#rounds.map((end) => end()), this.#wakeRounds.end()]);
  }

  async #handle(attempt: AttemptLease): Promise<AttemptEnd> {
    try {
      const end = await this.#execute(attempt);
      if (typeof end !== "string" && end.kind === "unfit") return this.#handBack.endOf(end.times);
      this.#handBack.fitted();
      const execution = typeof end === "string" ? end : end.kind;
      return { outcome: outcomeOf(end), record: JSON.stringify({ execution }) };
    } catch (thrown) {
      const error = ensureError(thrown);
      this.#options.onError(error);
      return { outcome: { kind: "retry", error } };
    }
  }

  async #execute(attempt: AttemptLease): Promise<Executed> {
    const { workflow, observer } = this.#options;
    const ref = runOfKey(attempt.key) ?? { workflow: workflow.name, id: attempt.key.name };
    const claimed = await this.#claim(ref, attempt);
    if (claimed.kind === "ended") await wakeFollowers(this.#options, ref, claimed);
    if (claimed.kind === "unfit") {
      observer?.handedBack(workflow.name);
      return claimed;
    }
    if (claimed.kind !== "held") return claimed.kind;
    if (ref.workflow !== workflow.name) {
      const end = await this.#runSpread(claimed, attempt);
      if (end.kind === "ended") await wakeFollowers(this.#options, ref, end.followers);
      return end;
    }
    const execution = {
      epoch: claimed.epoch,
      cancels: new CancelRequests(),
      pauses: new PauseState(claimed.resumes),
      stop: followAbort(attempt.signal),
    };
    this.#active.set(ref.id, execution);
    try {
      const end = await this.#runHeld(ref, claimed, attempt, execution);
      // Before the attempt ends: if the worker dies here, the repeated attempt finds the run ended.
      if (end.kind === "ended") await wakeFollowers(this.#options, ref, end.followers);
      return end;
    } finally {
      if (this.#active.get(ref.id) === execution) this.#active.delete(ref.id);
    }
  }

  async #claim(ref: RunRef, attempt: AttemptLease): Promise<Claimed> {
    const { store, queue, workerId, workflow: code } = this.#options;
    const lease = attempt.epoch;
    const owner = `${workerId}/${attempt.startedAtMs}/${lease}`;
    const claimed = await store.claim(ref, { lease, owner, code });
    if (claimed.kind !== "fenced") return claimed;
    // The queue's counter is reset by another number of shards or a deleted key. This attempt may still be the latest one.
    const key = await queue.getKey(attempt.key);
    return key?.epoch === lease
      ? await store.claim(ref, { lease, owner, code, anew: true })
      : claimed;
  }

  async #runHeld(
    ref: RunRef,
    held: Held,
    attempt: AttemptLease,
    { stop, pauses, cancels }: ActiveExecution,
  ): Promise<ExecutionEnd> {
    const { store, workflow, startChild, wake, clusters, observer, onWarning, onLog } =
      this.#options;
    const { recordLimitBytes, recheckMs, limits, aroundBody } = this.#options;
    const permits = limits && { limits, key: formatKey(attempt.key) };
    const onRecorded = observer && ((step: RecordedStep) => observer.recorded(workflow.name, step));
    const beganMs = performance.now();
    const trace = this.#startSpan(held, attempt);
    const options: ExecutionOptions = {
      store,
      workflow,
      held,
      stopped: stop.signal,
      checkLease: attempt.checkExpiry,
      pauses,
      cancels,
      wakeUps: this.#wakeRounds.of(attempt.key),
      startChild,
      spread: { ...startChild, wake: (spread) => wake(spread, "resume") },
      clock: () => performance.now(),
      random: Math.random,
      onWarning: (warning) => onWarning?.(ref, warning),
      onLog: (line) => onLog?.(ref, line),
      ...defined({ onRecorded, clusters, permits, trace, recordLimitBytes, recheckMs }),
      ...(aroundBody && { aroundBody: (...args) => aroundBody(ref, ...args) }),
    };
    const run = () => runExecution(options);
    const end = await (trace === undefined ? run() : trace.run(run));
    const result = end.kind === "ended" ? end.status : end.kind;
    trace?.end(result);
    observer?.executionEnded(workflow.name, { result, durationMs: performance.now() - beganMs });
    return end;
  }

  async #runSpread(held: Held, attempt: AttemptLease): Promise<ExecutionEnd> {
    const { store, workflow, wake, clusters, limits, onError, onLog } = this.#options;
    const { recordLimitBytes, recheckMs } = this.#options;
    const permits = limits && { limits, key: formatKey(attempt.key) };
    const { parent = held, parent: _parent, ...view } = held.run;
    const { spread } = held.run.input as Partial<SpreadInput>;
    // Of the run, which has one trace.
    const run = { ...view, ...defined({ createdAtMs: spread?.createdAtMs }) };
    const trace = this.#startSpan({ ...held, ...parent, run }, attempt);
    const execute = () =>
      this.#spreads.run(held, attempt, {
        store,
        workflow,
        wake: (ref) => wake(ref, "a spread step is held back"),
        checkLease: attempt.checkExpiry,
        clock: () => performance.now(),
        random: Math.random,
        onError,
        onLog: (line) => onLog?.(parent, line),
        ...defined({ clusters, permits, trace, recordLimitBytes, recheckMs }),
      });
    const end = await (trace === undefined ? execute() : trace.run(execute));
    trace?.end(end.kind);
    return end;
  }

  #startSpan(held: Held, { key, traceparent }: AttemptLease): ExecutionSpan | undefined {
    const { workflow, id, epoch, run } = held;
    const { version, createdAtMs, parent, round } = run;
    return this.#options.tracing?.startExecution({
      workflow,
      id,
      cluster: key.cluster,
      version,
      createdAtMs,
      epoch,
      ...defined({ round, parent, traceparent }),
    });
  }

  /** Aborts the bodies of cancelled runs and the executions of terminated ones, suspends paused ones, and continues resumed ones. */
  async #interrupt(): Promise<void> {
    if (this.#active.size === 0 && !this.#spreads.areActive) return;
    const { store, workflow } = this.#options;
    const [cancelling, fences, pausing] = await Promise.all([
      store.cancelling(workflow.name),
      store.fences(workflow.name),
      store.pausing(workflow.name),
    ]);
    if (this.#spreads.areActive) await this.#spreads.interrupt(cancelling);
    const isPausing = new Set(pausing);
    for (const [id, { pauses }] of this.#active) pauses.note(isPausing.has(id));
    for (const [id, cancel] of cancelling) this.#active.get(id)?.cancels.note(cancel);
    for (const [id, epoch] of fences) {
      const execution = this.#active.get(id);
      if (execution !== undefined && execution.epoch < epoch) {
        execution.stop.abort(new FencedError(`run ${workflow.name}/${id} was terminated`));
      }
    }
  }

  async #announce(): Promise<void> {
    if (this.#isStopping || this.#isPaused) return;
    const { store, workflow, wake } = this.#options;
    const { name } = workflow;
    const blocked = await store.announce(name, this.#instance, workflow);
    await Promise.all(blocked.map((id) => wake({ workflow: name, id }, "worker started")));
  }

  /** Runs that only this worker's code fits are blocked from now on, until another such worker starts. */
  async #retract(): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    await this.#withdraw();
  }

  async #withdraw(): Promise<void> {
    const { store, workflow, onError } = this.#options;
    const retracted = store.retract(workflow.name, this.#instance);
    retracted.catch((error: unknown) => onError(ensureError(error)));
    await Promise.race([retracted.catch(() => undefined), sleepMs(LAST_ROUND_MS)]);
  }

  async #wakeOverdue(workflow: string): Promise<void> {
    const { store, wake, observer } = this.#options;
    const { runs, ends, dropped } = await store.overdue(workflow);
    if (dropped > 0) observer?.dropped(workflow, dropped);
    await Promise.all(runs.map((id) => wake({ workflow, id }, "overdue")));
    await Promise.all(ends.map((end) => this.#checkEnd(end)));
  }

  async #checkEnd({ key, object }: KeptEnd): Promise<void> {
    const { store, workflow, isObjectGone } = this.#options;
    if (await isObjectGone(object)) await store.releaseEnd(workflow.name, key);
  }
}

/** Returns the outcome of the queue's attempt. A run that has ended is gone for the queue, which then removes its key. */
function outcomeOf(end: Exclude<Executed, { kind: "unfit" }>): Outcome {
  if (typeof end === "string") {
    switch (end) {
      case "missing":
      case "ended":
        return { kind: "gone" };
      case "waiting":
      case "paused":
        return { kind: "awaitChange" };
      case "fenced":
        return { kind: "cancelled", cause: "leaseLost" };
    }
  }
  switch (end.kind) {
    case "waiting":
      return end.afterMs === undefined
        ? { kind: "awaitChange" }
        : { kind: "requeueAfter", afterMs: end.afterMs };
    case "blocked":
      return { kind: "requeueAfter", afterMs: end.afterMs };
    case "continued":
      return { kind: "requeueAfter", afterMs: 0 };
    case "ended":
      return { kind: "gone" };
    case "lost":
      return { kind: "cancelled", cause: "leaseLost" };
    case "error":
      return { kind: "retry", error: end.error };
  }
}

/** Does not wait for an unavailable Redis at the end. */
const repeatByTimer: Repeat = (round, everyMs, onError) => {
  let last: Promise<void> = Promise.resolve();
  let isRunning = false;
  const timer = setInterval(() => {
    if (isRunning) return;
    isRunning = true;
    last = round()
      .catch((error: unknown) => onError(ensureError(error)))
      .finally(() => {
        isRunning = false;
      });
  }, everyMs);
  return async () => {
    clearInterval(timer);
    await Promise.race([last, sleepMs(LAST_ROUND_MS)]);
  };
};
