import { defined, KonvergeError } from "@konverge/core";
import { markStateOf } from "../store/mark-state.ts";
import type { Interrupt } from "./execution-scope.ts";
import type { ClusterAccess } from "../define/cluster-access.ts";
import { assertJson } from "../define/json-value.ts";
import type { RecordedStep } from "./run-observer.ts";
import { bytesOf, findFull, findWarnings } from "./run-limits.ts";
import { FencedError, type Held, type StepMark } from "../store/run-journal-store.ts";
import type {
  BufferedSignal,
  StepProgress,
  RunWarning,
  StepKind,
  StepRecord,
} from "../store/run-record.ts";
import type { RunJournalStore } from "../store/run-journal-store.ts";

const MAX_RECORD_BYTES = 64 * 1_024;
/** Recorded when they begin. */
const UNTIMED: ReadonlySet<StepKind> = new Set<StepKind>(["sleep", "now"]);

/** What one activation knows of its run, and writes to it under its epoch. */
export interface RunJournal extends Pick<RunJournalStore, "scope" | "installation" | "statesOf"> {
  readonly held: Held;
  /** Where Kubernetes verbs go. */
  readonly clusters: ClusterAccess | undefined;
  /** Aborted when this activation must stop, with the reason. */
  readonly stopped: AbortSignal;
  /** Aborted when the cancellation of the run was ordered. */
  readonly cancelRequested: AbortSignal;
  /** Aborted with either of them. */
  stoppedOrCancelled(): AbortSignal;
  readonly random: () => number;
  /** Waits in place; ends early when the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Told before each try of a body; what it throws takes the place of the body. */
  readonly beforeBody: (step: string) => void;
  /** Signals that nobody has taken, in the order of sending. */
  readonly buffered: readonly BufferedSignal[];
  /** True while a cancellation is to be thrown by the next verb that would begin something. */
  readonly cancelPending: boolean;
  /** True once it was thrown. */
  readonly cancelThrown: boolean;
  /** Never later than the store's clock, epoch ms. */
  nowMs(): number;
  /** Notes that a step begins, and answers since when it goes on: also across activations in which it waited. */
  begin(step: string): number;
  get(step: string): StepRecord | undefined;
  progressOf(step: string): StepProgress | undefined;
  commit(
    step: string,
    record: StepRecord,
    options?: {
      readonly sleepMs?: number;
      readonly taken?: BufferedSignal;
      readonly cancels?: boolean;
    },
  ): Promise<StepRecord>;
  note: (step: string, progress: Parameters<RunJournalStore["note"]>[2]) => Promise<StepProgress>;
  /** Has the run woken by changes of these objects. */
  watch(objects: readonly string[]): Promise<void>;
  /** Records a pending cancellation as the end of this step. */
  throwCancel(
    step: string,
    kind: StepKind,
    known?: Pick<StepRecord, "attempts" | "child">,
  ): Promise<StepRecord | undefined>;
  /** @throws KonvergeError `invalid_result` for what cannot be recorded */
  assertFits(step: string, record: StepRecord): void;
  /** @throws KonvergeError `invalid_workflow` when a run may have no further step */
  assertRoom(): void;
  /** Asks the store. @throws FencedError once another activation has the run */
  assertHeld(): Promise<void>;
  interruptOf(error: Error): Interrupt;
}

export interface RunJournalOptions {
  readonly store: RunJournalStore;
  readonly held: Held;
  readonly stopped: AbortSignal;
  readonly cancelRequested: AbortSignal;
  /** Ms on a clock that only goes forward. */
  readonly clock: () => number;
  readonly random: () => number;
  /** For tests without real time. Default: a timer. */
  readonly pause?: RunJournal["pause"];
  /** Where Kubernetes verbs go. Default: nowhere, and they are refused. */
  readonly clusters?: ClusterAccess;
  /** Told of each warning once in the life of the run. Default: nobody. */
  readonly onWarning?: (warning: RunWarning) => void;
  /** Told of each record that has a duration. Default: nobody. */
  readonly onRecorded?: (step: RecordedStep) => void;
  /** For tests. Default: nothing. */
  readonly beforeBody?: RunJournal["beforeBody"];
}

export function createRunJournal(options: RunJournalOptions): RunJournal {
  const { store, held, stopped, cancelRequested, clock, random } = options;
  const claimedAtMs = clock();
  const steps = new Map(held.steps);
  const progress = new Map(held.progress);
  const buffered = [...held.signals];
  const begunMs = new Map(held.waited.map(({ step, sinceMs }) => [step, sinceMs]));
  const watched = new Set(held.watched);
  let { bytes } = held;
  let warnings = held.run.warnings ?? [];
  let either: AbortSignal | undefined;
  let reportsLoss = held.died;
  let cancelThrown = held.cancelledAt !== undefined;
  const isCancelPending = () =>
    !cancelThrown &&
    held.failing === undefined &&
    (held.run.cancel !== undefined || cancelRequested.aborted);

  const commit: RunJournal["commit"] = async (step, record, how = {}) => {
    const startedAtMs = UNTIMED.has(record.kind) ? undefined : begunMs.get(step);
    const told = {
      ...record,
      ...defined({ startedAtMs }),
      ...(reportsLoss ? { workerLost: true } : {}),
    };
    reportsLoss = false;
    const ownBytes = bytesOf(step, told);
    const fresh = findWarnings({ steps: steps.size + 1, bytes: bytes + ownBytes }).filter(
      ({ code }) => !warnings.some((known) => known.code === code),
    );
    // Before the answer: a commit of another branch must not warn again.
    if (fresh.length > 0) warnings = [...warnings, ...fresh];
    const stored = await store.commit(held, step, told, {
      ...how,
      ...(fresh.length === 0 ? {} : { warnings }),
    });
    for (const warning of fresh) options.onWarning?.(warning);
    if (stored.kind !== "sleep" && stored.kind !== "now") {
      const { kind, error, atMs = 0 } = stored;
      const durationMs = atMs - (stored.startedAtMs ?? atMs);
      options.onRecorded?.({ kind, failed: error !== undefined, durationMs });
    }
    steps.set(step, stored);
    bytes += ownBytes;
    if (how.taken !== undefined) buffered.splice(buffered.indexOf(how.taken), 1);
    if (stored.error?.code === "cancelled" && how.cancels === true) cancelThrown = true;
    return stored;
  };

  const nowMs = () => Math.floor(held.nowMs + clock() - claimedAtMs);

  return {
    scope: store.scope,
    installation: () => store.installation(),
    async statesOf(marks) {
      const { workflow, id, run } = held;
      const isOwn = (mark: StepMark) =>
        mark.workflow === workflow && mark.id === id && mark.createdAtMs === run.createdAtMs;
      const others = marks.filter((mark) => !isOwn(mark));
      const states = others.length === 0 ? [] : await store.statesOf(others);
      const known = new Map(others.map((mark, index) => [mark, states[index] ?? "live"]));
      return marks.map((mark) => known.get(mark) ?? markStateOf("running", steps, mark.step));
    },
    held,
    clusters: options.clusters,
    stopped,
    cancelRequested,
    // Made once: such a signal costs more than the rest of a step.
    stoppedOrCancelled: () => (either ??= AbortSignal.any([stopped, cancelRequested])),
    random,
    pause: options.pause ?? pause,
    beforeBody: options.beforeBody ?? (() => undefined),
    buffered,
    get cancelPending() {
      return isCancelPending();
    },
    get cancelThrown() {
      return cancelThrown;
    },
    nowMs,
    begin(step) {
      const sinceMs = begunMs.get(step) ?? nowMs();
      begunMs.set(step, sinceMs);
      return sinceMs;
    },
    get: (step) => steps.get(step),
    progressOf: (step) => progress.get(step),
    commit,
    async note(step, note) {
      const noted = await store.note(held, step, note);
      progress.set(step, noted);
      return noted;
    },
    async watch(objects) {
      const fresh = objects.filter((object) => !watched.has(object));
      if (fresh.length === 0) return;
      await store.watch(held, fresh);
      for (const object of fresh) watched.add(object);
    },
    async throwCancel(step, kind, known = { attempts: 0 }) {
      if (!isCancelPending()) return undefined;
      const { by, reason } = held.run.cancel ?? {};
      const message = `the run was cancelled${by === undefined ? "" : ` by ${by}`}${reason === undefined ? "" : `: ${reason}`}`;
      const record: StepRecord = { kind, error: { code: "cancelled", message }, ...known };
      return await commit(step, record, { cancels: true });
    },
    assertFits,
    assertRoom() {
      const full = findFull({ steps: steps.size, bytes });
      if (full !== undefined) throw new KonvergeError("invalid_workflow", full);
    },
    async assertHeld() {
      if (await store.holds(held)) return;
      throw new FencedError(`another execution holds the run ${held.workflow}/${held.id}`);
    },
    interruptOf(error) {
      if (error instanceof FencedError || stopped.aborted) return { kind: "lost" };
      return { kind: "error", error };
    },
  };
}

function assertFits(step: string, record: StepRecord): void {
  assertJson(record.value, `what "${step}" gives`);
  const bytes = Buffer.byteLength(JSON.stringify(record));
  if (bytes <= MAX_RECORD_BYTES) return;
  throw new KonvergeError(
    "invalid_result",
    `what "${step}" gives has ${bytes} bytes, at most ${MAX_RECORD_BYTES} are kept: return a reference in place of the data`,
  );
}

/** Ends early when `signal` is aborted. */
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
