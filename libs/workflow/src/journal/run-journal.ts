import { defined, KonvergeError } from "@konverge/core";
import { createAttemptSecrets, type AttemptSecrets } from "@konverge/kube";
import { isOfRound, markStateOf } from "../store/mark-state.ts";
import {
  FencedError,
  type CommitOptions,
  type Held,
  type MarkState,
  type ProgressNote,
  type RunNews,
  type StepMark,
} from "../store/run-journal-store.ts";
import {
  awaitedSignals,
  cancellationOf,
  type Failure,
  type Heartbeat,
  type RunWait,
  type RunWarning,
  type StepKind,
  type StepProgress,
  type StepRecord,
} from "../store/run-record.ts";
import { runningBranch } from "./branch.ts";
import { DeliveryOrder } from "./delivery-order.ts";
import type { Interrupt } from "./execution-scope.ts";
import { CancelRequests } from "./cancel-requests.ts";
import { followAbort } from "./follow-abort.ts";
import type { ClusterAccess } from "../define/cluster-access.ts";
import type { RunRef } from "../define/run-ref.ts";
import { assertJson } from "../define/json-value.ts";
import { OfferedUndos } from "./offered-undos.ts";
import { PauseState } from "./pause-state.ts";
import type { ExecutionSpan } from "./run-tracing.ts";
import type { RunJournalOptions } from "./run-journal-options.ts";
import { RunLog } from "./run-log.ts";
import { RunOutput } from "./run-output.ts";
import { SignalInbox } from "./signal-inbox.ts";
import {
  bytesOf,
  DEFAULT_LIMITS,
  findFull,
  findWarnings,
  higherOf,
  type RunSize,
} from "./run-limits.ts";

/** Steps beyond the limit that a cancelled run may record. */
const CLEANUP_STEPS = 100;
const RECORD_LIMIT_BYTES = 1_024 * 1_024;
/** By then, a worker may have fitting code. */
const RECHECK_MS = 60_000;

/** Thrown by a verb that blocks the run, with the reason and a fix. */
export class BlockingError extends Error {
  override readonly name = "BlockingError";
}

/** The journal of a run, as one execution reads and writes it under its epoch. */
export class RunJournal {
  readonly held: Held;
  readonly output: RunOutput;
  readonly log: RunLog;
  /** Clusters of the Kubernetes verbs. */
  readonly clusters: ClusterAccess | undefined;
  readonly permits: RunJournalOptions["permits"];
  /** Aborted when this execution must stop, with the reason. */
  readonly stopped: AbortSignal;
  readonly checkLease: NonNullable<RunJournalOptions["checkLease"]>;
  readonly inbox: SignalInbox;
  readonly random: () => number;
  readonly pause: NonNullable<RunJournalOptions["pause"]>;
  readonly aroundBody: NonNullable<RunJournalOptions["aroundBody"]>;
  readonly beatEveryMs: number | undefined;
  readonly onBeat: NonNullable<RunJournalOptions["onBeat"]>;
  /** Texts of the sensitive objects that bodies of this execution have read. */
  readonly secrets: AttemptSecrets = createAttemptSecrets();
  /** The order in which the function receives the records. */
  readonly order: DeliveryOrder;
  /** The places of waiting steps in the lines of limits, by step. */
  readonly places: Map<string, { leave(): void }> = new Map();
  /** The undos that the function of this execution has offered. */
  readonly undos: OfferedUndos = new OfferedUndos();
  readonly pauses: PauseState;
  /** The span of this execution. */
  readonly trace: ExecutionSpan | undefined;
  readonly #options: RunJournalOptions;
  readonly #claimedAtMs: number;
  readonly #steps: Map<string, StepRecord>;
  readonly #progress: Map<string, StepProgress>;
  /** The last note of each step that is not stored yet. */
  readonly #noting = new Map<string, Promise<unknown>>();
  readonly #begunMs: Map<string, number | undefined>;
  readonly #watched: Set<string>;
  #bytes: number;
  #lastSeq: number;
  #warnings: readonly RunWarning[];
  readonly #given: RunWarning[] = [];
  readonly #limits: RunSize;
  readonly #recordLimitBytes: number;
  /** Interval in which the run is rechecked while it is blocked, in ms. */
  readonly recheckMs: number;
  readonly #cancels: CancelRequests;
  #stoppedOrCancelled: { readonly number: number; readonly signal: AbortSignal } | undefined;
  #reportsLoss: boolean;
  #wakeSeq: number;
  #cancelCalls: number;
  /** How many of the cancellations were thrown. */
  #thrown: number;

  constructor(options: RunJournalOptions) {
    const { held } = options;
    this.held = held;
    const store = options.store;
    this.output = new RunOutput({
      held,
      store: (output) => store.publish(held, output),
      storeLabels: (labels) => store.relabel(held, labels),
    });
    this.log = new RunLog({
      logged: held.logged ?? 0,
      nowMs: () => this.nowMs(),
      append: (lines, logged) => store.appendLog(held, lines, logged),
      scrub: (text) => this.secrets.scrub(text),
      onLine: (line) => options.onLog?.(line),
    });
    this.pauses = options.pauses ?? new PauseState(held.resumes);
    this.trace = options.trace;
    this.clusters = options.clusters;
    this.permits = options.permits;
    this.stopped = options.stopped;
    this.checkLease = options.checkLease ?? (() => undefined);
    this.random = options.random;
    this.pause = options.pause ?? pause;
    this.aroundBody = options.aroundBody ?? ((_attempt, body) => body);
    this.beatEveryMs = options.beatEveryMs;
    this.onBeat = options.onBeat ?? (() => undefined);
    this.order = new DeliveryOrder(held.steps);
    this.#options = options;
    this.#claimedAtMs = options.clock();
    this.#steps = new Map(held.steps);
    this.#progress = new Map(held.progress);
    this.inbox = new SignalInbox(options.store, held);
    this.#begunMs = new Map(held.waited.map(({ step, sinceMs }) => [step, sinceMs]));
    this.#watched = new Set(held.watched);
    this.#bytes = held.bytes;
    this.#lastSeq = [...held.steps.values()].reduce((last, { seq = 0 }) => Math.max(last, seq), 0);
    this.#warnings = held.run.warnings ?? [];
    this.#reportsLoss = held.died;
    this.#wakeSeq = held.wakeSeq;
    this.#cancelCalls = held.cancelCalls;
    this.#limits = {
      ...DEFAULT_LIMITS,
      ...higherOf({ ...DEFAULT_LIMITS, ...options.limits }, held.run.limits ?? {}),
    };
    this.#recordLimitBytes = options.recordLimitBytes ?? RECORD_LIMIT_BYTES;
    this.recheckMs = options.recheckMs ?? RECHECK_MS;
    this.#cancels = options.cancels ?? new CancelRequests();
    this.#thrown = held.cancelledAt === undefined ? Math.max(0, held.cancels - 1) : held.cancels;
  }

  get scope(): string {
    return this.#options.store.scope;
  }

  installation(): Promise<string> {
    return this.#options.store.installation();
  }

  /** Aborted when a cancellation of the run that was not thrown yet is requested during this execution. */
  get cancelRequested(): AbortSignal {
    return this.#cancels.signalOf(this.#thrown + 1);
  }

  /** Aborted when this execution must stop, or when a cancellation of the run is requested that was not thrown yet. */
  stoppedOrCancelled(): AbortSignal {
    const number = this.#thrown + 1;
    // Created once per cancellation.
    if (this.#stoppedOrCancelled?.number !== number) {
      const signal = followAbort(this.stopped, this.cancelRequested).signal;
      this.#stoppedOrCancelled = { number, signal };
    }
    return this.#stoppedOrCancelled.signal;
  }

  /** True if the next verb that would start new work must throw the cancellation. */
  get cancelPending(): boolean {
    return this.#requested > this.#thrown && this.held.failing === undefined;
  }

  /** True if the run is to be paused, so that no verb may begin or end a wait. */
  get isPausing(): boolean {
    return this.pauses.isPausing;
  }

  /** How many cancellations were requested. */
  get #requested(): number {
    return Math.max(this.held.cancels, this.#cancels.latest?.number ?? 0);
  }

  /** How often a cancellation was requested. Each is passed to the children that the run waits for. */
  get cancelCalls(): number {
    return this.#cancelCalls;
  }

  /** True once a cancellation was thrown. */
  get cancelThrown(): boolean {
    return this.#thrown > 0;
  }

  /** The store's clock, or slightly before it, epoch ms. */
  nowMs(): number {
    return Math.floor(this.held.nowMs + this.#options.clock() - this.#claimedAtMs);
  }

  /** Notes the begin of a step. Returns its first begin, also if that was in an earlier execution in which it waited. */
  begin(step: string): number {
    const sinceMs = this.#begunMs.get(step) ?? this.nowMs();
    this.#begunMs.set(step, sinceMs);
    return sinceMs;
  }

  /** The records by name. */
  get recorded(): ReadonlyMap<string, StepRecord> {
    return this.#steps;
  }

  /** The progress of steps without a record, by name. */
  get begun(): ReadonlyMap<string, StepProgress> {
    return this.#progress;
  }

  /** Place of the last known record in the order of commits; 0 without records. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  get(step: string): StepRecord | undefined {
    return this.#steps.get(step);
  }

  progressOf(step: string): StepProgress | undefined {
    return this.#progress.get(step);
  }

  async commit(step: string, given: StepRecord, how: CommitOptions = {}): Promise<StepRecord> {
    // A body at work may end until its branch is closed: what it did is recorded.
    if (given.kind !== "step") runningBranch()?.assertOpen();
    const isInstant = given.kind === "now" || given.kind === "race";
    const startedAtMs = isInstant ? undefined : this.#begunMs.get(step);
    const { tries } = this.#progress.get(step) ?? {};
    const record = {
      ...given,
      ...defined({ tries, startedAtMs }),
      ...(this.undos.has(step) ? { hasUndo: true } : {}),
      ...(this.#reportsLoss ? { workerLost: true } : {}),
    };
    this.#reportsLoss = false;
    const bytes = bytesOf(step, record);
    const fresh = this.#takeWarnings(bytes);
    // A codec may take longer for a heartbeat than for this record, which removes it.
    const noting = this.#noting.get(step);
    if (noting !== undefined) await noting.catch(() => undefined);
    const options = {
      ...how,
      onStatus: (isPausing: boolean) => this.pauses.note(isPausing),
      ...(fresh.length === 0 ? {} : { warnings: this.#warnings }),
    };
    const { store } = this.#options;
    const stored = await this.output.storeWith((output) =>
      this.order.commit(() =>
        store.commit(this.held, step, record, { ...options, ...defined({ output }) }),
      ),
    );
    for (const warning of fresh) this.#options.onWarning?.(warning);
    this.#reportRecorded(step, stored);
    this.#steps.set(step, stored);
    this.#progress.delete(step);
    this.#bytes += bytes;
    this.#lastSeq = Math.max(this.#lastSeq, stored.seq ?? 0);
    if (how.taken !== undefined) this.inbox.remove(how.taken);
    if (stored.error?.code === "cancelled") this.#thrown = how.cancels ?? this.#thrown;
    return stored;
  }

  /** Stores the progress of a step, with its last heartbeat, after its earlier notes. */
  async note(step: string, progress: ProgressNote): Promise<StepProgress> {
    const earlier = this.#noting.get(step);
    const noting =
      earlier === undefined
        ? this.#note(step, progress)
        : earlier.catch(() => undefined).then(() => this.#note(step, progress));
    this.#noting.set(step, noting);
    try {
      return await noting;
    } finally {
      if (this.#noting.get(step) === noting) this.#noting.delete(step);
    }
  }

  async #note(step: string, progress: ProgressNote): Promise<StepProgress> {
    const { heartbeat, tries } = this.#progress.get(step) ?? {};
    const noted = await this.#options.store.note(this.held, step, {
      ...defined({ heartbeat, tries }),
      ...progress,
      ...(this.undos.has(step) ? { hasUndo: true } : {}),
    });
    this.#progress.set(step, noted);
    return noted;
  }

  /** Keeps the last heartbeat of an attempt for the next note of the step. */
  keepHeartbeat(step: string, heartbeat: Heartbeat | undefined): void {
    if (heartbeat === undefined) return;
    const known = this.#progress.get(step) ?? { attempts: 0, untilMs: 0 };
    this.#progress.set(step, { ...known, heartbeat });
  }

  /** Registers the run to be woken by changes of these objects. */
  async watch(objects: readonly string[]): Promise<void> {
    const fresh = objects.filter((object) => !this.#watched.has(object));
    if (fresh.length === 0) return;
    await this.#options.store.watch(this.held, fresh);
    for (const object of fresh) this.#watched.add(object);
  }

  /** Reads what has arrived for these waits. */
  async refresh(waits: readonly RunWait[]): Promise<RunNews> {
    const signals = awaitedSignals(waits);
    const children = waits.flatMap(({ child, spread }) => child ?? spread ?? []);
    const news = await this.#options.store.news(this.held, { signals, children });
    this.#wakeSeq = news.wakeSeq;
    this.inbox.renew(signals, news);
    for (const { step, spread, child = spread } of waits) {
      const hasEnded = ({ workflow, id }: RunRef) =>
        workflow === child?.workflow && id === child.id;
      if (!news.ended.some(hasEnded)) continue;
      this.#progress.set(step, { attempts: 0, untilMs: 0, childEnded: true });
    }
    this.pauses.note(news.isPausing, news.resumes);
    this.#cancelCalls = news.cancelCalls;
    const { cancel, cancels } = news;
    if (cancel !== undefined) this.#cancels.note({ number: cancels, request: cancel });
    return news;
  }

  /** The number of the last known wake-up. */
  get wakeSeq(): number {
    return this.#wakeSeq;
  }

  /** Records a pending cancellation as the end of this step, or one that has reached the step already. */
  async throwCancel(
    step: string,
    kind: StepKind,
    known: Pick<StepRecord, "attempts" | "child"> = { attempts: 0 },
    hasReached = false,
  ): Promise<StepRecord | undefined> {
    const { cancelPending } = this;
    if (!cancelPending && !hasReached) return undefined;
    const record: StepRecord = { kind, error: this.cancelFailure(), ...known };
    return await this.commit(step, record, cancelPending ? { cancels: this.#requested } : {});
  }

  cancelFailure(): Failure {
    return cancellationOf(this.#cancels.latest?.request ?? this.held.run.cancel ?? {});
  }

  /** @throws KonvergeError `invalid_result` if the record cannot be stored */
  assertFits(step: string, record: StepRecord): void {
    assertJson(record.value, `the value of "${step}"`);
    const bytes = Buffer.byteLength(JSON.stringify(record));
    const limit = this.#recordLimitBytes;
    if (bytes <= limit) return;
    throw new KonvergeError(
      "invalid_result",
      `the value of "${step}" has ${bytes} bytes, the limit is ${limit}; return a reference instead of the data, or raise runRecordLimitKiB`,
    );
  }

  /** Returns why the run may have no further step; undefined if it may. A cancellation has room for the function's cleanup. */
  findFull(): string | undefined {
    const kept = this.cancelPending || this.cancelThrown ? CLEANUP_STEPS : 0;
    return findFull({ steps: this.#steps.size - kept, bytes: this.#bytes }, this.#limits);
  }

  /** Reads from the store. @throws FencedError once another execution has the run */
  async assertHeld(): Promise<void> {
    if (await this.#options.store.holds(this.held)) return;
    throw new FencedError(`another execution holds the run ${this.held.workflow}/${this.held.id}`);
  }

  async statesOf(marks: readonly StepMark[]): Promise<MarkState[]> {
    const { workflow, id, run } = this.held;
    const isOwn = (mark: StepMark) =>
      mark.workflow === workflow && mark.id === id && isOfRound(mark, run);
    const others = marks.filter((mark) => !isOwn(mark));
    const states = others.length === 0 ? [] : await this.#options.store.statesOf(others);
    const known = new Map(others.map((mark, index) => [mark, states[index] ?? "live"]));
    return marks.map((mark) => known.get(mark) ?? markStateOf("running", this.#steps, mark));
  }

  interruptOf(error: Error): Extract<Interrupt, { kind: "lost" | "error" | "blocked" }> {
    if (error instanceof BlockingError) return { kind: "blocked", reason: error.message };
    if (error instanceof FencedError || this.stopped.aborted) return { kind: "lost" };
    return { kind: "error", error };
  }

  /** Stores a warning with the next record, and reports it; replaces one with the same code. */
  warn(warning: RunWarning): void {
    const { code, message } = warning;
    if (this.#warnings.some((known) => known.code === code && known.message === message)) return;
    this.#warnings = this.#warnings.filter((known) => known.code !== code);
    this.#given.push(warning);
  }

  /** Returns new warnings, and adds them before the commit: that of another branch must not warn again. */
  #takeWarnings(bytes: number): readonly RunWarning[] {
    const size = { steps: this.#steps.size + 1, bytes: this.#bytes + bytes };
    const limits = findWarnings(size, this.#limits).filter(
      ({ code }) => !this.#warnings.some((known) => known.code === code),
    );
    const fresh = [...this.#given.splice(0), ...limits];
    if (fresh.length > 0) this.#warnings = [...this.#warnings, ...fresh];
    return fresh;
  }

  #reportRecorded(step: string, { kind, error, atMs = 0, startedAtMs = atMs }: StepRecord): void {
    if (kind === "now" || kind === "race") return;
    const durationMs = atMs - startedAtMs;
    if (kind !== "step" && kind !== "undo") {
      this.trace?.waited({ step, kind, durationMs, ...defined({ errorCode: error?.code }) });
    }
    if (kind === "sleep") return;
    this.#options.onRecorded?.({ kind, failed: error !== undefined, durationMs });
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, Math.ceil(ms));
  const stop = () => resolve();
  signal.addEventListener("abort", stop, { once: true });
  await promise;
  clearTimeout(timer);
  signal.removeEventListener("abort", stop);
}
