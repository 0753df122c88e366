import { defined, type RunStatus } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";

export { RUN_STATUSES, type RunStatus } from "@konverge/core";

/** How many runs of a workflow stand how. Those that ended are counted as long as they are kept. */
export type RunCounts = Readonly<Record<RunStatus, number>>;

export type EndStatus = Extract<RunStatus, "done" | "failed" | "cancelled">;

export function isEndStatus(status: string): status is EndStatus {
  return status === "done" || status === "failed" || status === "cancelled";
}

/** What a journal entry is of. The same name met as another kind is a changed history. */
export type StepKind = "step" | "sleep" | "signal" | "child" | "now" | "undo" | "wait";

/** Why a step, a run or a child failed, as far as it is kept: no stack, no cause. */
export interface Failure {
  readonly code: string;
  readonly message: string;
}

/** A journal entry: written once, never changed. */
export interface StepRecord {
  readonly kind: StepKind;
  readonly value?: unknown;
  readonly error?: Failure;
  /** Of a sleep: when it is over, by Redis's clock, epoch ms. */
  readonly untilMs?: number;
  /** Times that the body was started, as far as they came to an end. */
  readonly attempts?: number;
  /** Of a signal: who sent it, if said. */
  readonly by?: string;
  /** Of a child that has ended: its run. */
  readonly child?: RunRef;
  /** When its first try or its wait began, by Redis's clock, epoch ms. Later than that when the worker died in it. */
  readonly startedAtMs?: number;
  /** True for the first record behind the loss of a worker, which may have begun this step before. */
  readonly workerLost?: boolean;
  /** Place in the order of commits, from 1; and when, by Redis's clock, epoch ms. Both are given by the store. */
  readonly seq?: number;
  readonly atMs?: number;
}

/** What a parked run waits for: a signal, a child, the end of a sleep, objects, or the next try of a step. */
export interface RunWait {
  /** Name of the step. */
  readonly step: string;
  readonly kind: StepKind;
  /** When it began, epoch ms. */
  readonly sinceMs?: number;
  /** When it ends by itself, epoch ms. */
  readonly untilMs?: number;
  /** Of a wait for objects: what they lacked when they were last looked at. */
  readonly message?: string;
  /** Of a wait for a child: its run. */
  readonly child?: RunRef;
}

/** How far an unfinished step has come. */
export interface StepProgress {
  readonly attempts: number;
  /** Tries in a row that ended for the API server's sake and are not counted. */
  readonly uncounted?: number;
  /** How the last try ended, for people. */
  readonly message?: string;
  /** When its next attempt is due, or its wait ends; by Redis's clock, epoch ms. */
  readonly untilMs: number;
}

/** A signal that nobody has taken yet. */
export interface BufferedSignal {
  readonly name: string;
  readonly id: string;
  readonly payload?: unknown;
  readonly by?: string;
  readonly atMs: number;
}

/** The same without what it brings, which is the run's affair. */
export type UnconsumedSignal = Omit<BufferedSignal, "payload">;

export function withoutPayload({ name, id, by, atMs }: BufferedSignal): UnconsumedSignal {
  return { name, id, ...defined({ by }), atMs };
}

/** That a run nears a bound at which it fails. */
export interface RunWarning {
  readonly code: "many_steps" | "many_bytes";
  /** What to do, in words for people. */
  readonly message: string;
}

export interface CancelRequest {
  readonly by?: string;
  readonly reason?: string;
}

/** That a run is tried again: by whom and why, and which one, if it is another. */
export interface RetryRequest extends CancelRequest {
  /** Id of the run of the same workflow that this one begins anew. */
  readonly originalRun?: string;
}

/** What to do when a run with the same key has not ended. */
export type OnExisting = "attach" | "reject" | "supersede";

export interface NewRun extends RunRef {
  readonly version: number;
  readonly input: unknown;
  readonly key?: string;
  readonly onExisting?: OnExisting;
  readonly parent?: RunRef;
  /** Who starts it. */
  readonly by?: string;
  /** When it is another try of a run. */
  readonly retry?: RetryRequest;
  /** The object that it is for. Once one with its key was started for a newer generation of the same object, it does not begin. */
  readonly origin?: { readonly uid: string; readonly generation: number };
  /** Key to request when it has ended, as text. */
  readonly notify?: string;
}

export type Started =
  | { readonly kind: "created"; readonly replaces?: string }
  /** A run with this id is there already. */
  | { readonly kind: "exists"; readonly run: RunView }
  /** Another run with this key goes on, or is for a newer generation. */
  | { readonly kind: "attached" | "rejected"; readonly id: string };

/** What is known of a run. Times are epoch ms by Redis's clock. */
export interface RunView extends RunSummary {
  readonly input: unknown;
  readonly result?: unknown;
}

/** As much of a run as tells whether something happened. */
export interface RunOverview {
  readonly status: RunStatus;
  /** How many steps are recorded. */
  readonly steps: number;
  readonly hasEnded: boolean;
}

/** A run without what it was given and what it gave. */
export interface RunSummary extends RunRef {
  readonly version: number;
  readonly status: RunStatus;
  readonly error?: Failure;
  /** Why it is stuck, and what to do. */
  readonly blockedReason?: string;
  readonly key?: string;
  readonly parent?: RunRef;
  /** Who started it, if said: the name of a token, `controller <name>/<object>`, `schedule <name>`. */
  readonly by?: string;
  readonly cancel?: CancelRequest;
  /** That it is another try, or goes on where it had failed. */
  readonly retry?: RetryRequest;
  readonly createdAtMs: number;
  readonly startedAtMs?: number;
  readonly endedAtMs?: number;
  /** When it goes on by itself, while it is parked. */
  readonly waitingUntilMs?: number;
  /** For what, while it is parked; at most 20. */
  readonly waits?: readonly RunWait[];
  /** Each is given once, when half of a bound is reached. */
  readonly warnings?: readonly RunWarning[];
}

/** How a run fails, kept before the first undo so that a crash cannot change it. */
export interface Failing {
  readonly status: "failed" | "cancelled";
  readonly error: Failure;
}

/** The right to write to a run: every claim raises the epoch, and older ones are refused. */
export interface Held extends RunRef {
  readonly epoch: number;
  readonly run: RunView;
  readonly steps: ReadonlyMap<string, StepRecord>;
  readonly progress: ReadonlyMap<string, StepProgress>;
  /** Of the steps, with their names. */
  readonly bytes: number;
  readonly signals: readonly BufferedSignal[];
  /** What it waited for when it was parked last. */
  readonly waited: readonly RunWait[];
  readonly failing?: Failing;
  /** The step at which the cancellation was thrown. */
  readonly cancelledAt?: string;
  /** True when the activation before has not let go of the run: what it had begun is not known. */
  readonly died: boolean;
  /** Raised by each signal and cancellation. */
  readonly wakeSeq: number;
  /** Objects for which the run is in the index of waits. */
  readonly watched: ReadonlySet<string>;
  /** The store's clock when it was claimed, epoch ms. */
  readonly nowMs: number;
}

export type Claimed =
  | ({ readonly kind: "held" } & Held)
  | { readonly kind: "missing" | "fenced" | "waiting" }
  | ({ readonly kind: "ended" } & Followers);

/** What goes on when a run ends. */
export interface Followers {
  readonly parent?: RunRef;
  readonly next?: RunRef;
  /** Key to request, as text. */
  readonly notify?: string;
}

interface Claim {
  /** Grows with each attempt of the run; an older one is refused. */
  readonly lease: number;
  /** Of this attempt alone. */
  readonly owner: string;
  /** Take it although the lease is not newer: the counter is known to have begun anew. */
  readonly anew?: boolean;
}

export type Leave =
  | {
      readonly kind: "waiting";
      readonly untilMs?: number;
      readonly waits?: readonly RunWait[];
      /** Of those it has registered, the objects that it goes on to wait for. All others are forgotten, and by any other end all. */
      readonly objects?: readonly string[];
    }
  | { readonly kind: "blocked"; readonly reason: string; readonly untilMs: number }
  | { readonly kind: "compensating"; readonly failing: Failing }
  | { readonly kind: "done"; readonly result: unknown }
  | { readonly kind: "failed" | "cancelled"; readonly error: Failure };

/** Left in an object by a step that has changed it. */
export interface StepMark extends RunRef {
  /** Of whose Redis the run is. */
  readonly installation: string;
  readonly createdAtMs: number;
  readonly step: string;
}

/** Thrown when another activation has claimed the run: this one changes nothing any more (P8). */
export class FencedError extends Error {
  override readonly name = "FencedError";
}

/**
 * Where runs are kept: Redis, or memory in tests. Every call is atomic, and may be repeated when its answer was lost. Those
 * that take `Held` throw {@link FencedError} once another epoch holds the run.
 */
export interface RunStore {
  /** Tells these runs from those of others with the same names: prefix and cluster. The same in all processes. */
  readonly scope: string;
  /** Made at random with the first run, so that marks of another Redis are never taken for ours. */
  installation(): Promise<string>;
  /** True while nobody else has claimed the run, and it has not ended. */
  holds(held: Held): Promise<boolean>;
  /** Who may still look for each mark. */
  statesOf(marks: readonly StepMark[]): Promise<MarkState[]>;
  start(run: NewRun): Promise<Started>;
  claim(ref: RunRef, claim: Claim): Promise<Claimed>;
  /**
   * Records a step once: answers the record that counts, which is another one's if it came first. `sleepMs` sets
   * `untilMs` by the store's clock; `taken` is removed from the buffered signals in the same move; `cancels` says that the
   * ordered cancellation is thrown here; `warnings` are those of the run from now on.
   */
  commit(
    held: Held,
    step: string,
    record: StepRecord,
    options?: {
      readonly sleepMs?: number;
      readonly taken?: BufferedSignal;
      readonly cancels?: boolean;
      readonly warnings?: readonly RunWarning[];
    },
  ): Promise<StepRecord>;
  /** Notes how far a step is; its `untilMs` is `delayMs` from now. With `keep`, what is noted already stays. */
  note(
    held: Held,
    step: string,
    progress: {
      readonly attempts: number;
      readonly delayMs: number;
      readonly keep?: boolean;
      readonly uncounted?: number;
      readonly message?: string;
    },
  ): Promise<StepProgress>;
  /** Enters the run into the index of waits, under each of the objects. */
  watch(held: Held, objects: readonly string[]): Promise<void>;
  /** Lets go of the run, or ends it. `compensating` keeps it. */
  leave(held: Held, leave: Leave): Promise<Followers>;
  signal(
    ref: RunRef,
    signal: Omit<BufferedSignal, "atMs">,
  ): Promise<"stored" | "duplicate" | "ended" | "full" | "missing">;
  cancel(ref: RunRef, request: CancelRequest): Promise<"requested" | "ended" | "missing">;
  get(ref: RunRef): Promise<RunView | undefined>;
  /** How it stands, without reading what it holds. */
  peek(ref: RunRef): Promise<RunOverview | undefined>;
  /** Newest first. `next` is the last place that was looked at, and missing when there is none behind it. */
  list(
    workflow: string,
    page: { readonly limit: number; readonly from?: RunPlace; readonly filter: RunFilter },
  ): Promise<{ readonly runs: readonly RunSummary[]; readonly next?: RunPlace }>;
  steps(ref: RunRef): Promise<ReadonlyMap<string, StepRecord>>;
  /** What was sent first, of the signals that nobody has taken; at most 20. */
  unconsumedSignals(ref: RunRef): Promise<readonly UnconsumedSignal[]>;
  counts(workflow: string): Promise<RunCounts>;
  /** Runs that should have gone on by now, whose wake-up may have been lost. Each is answered again after a while. */
  overdue(workflow: string): Promise<string[]>;
  /** Runs whose cancellation was ordered and not thrown yet. */
  cancelling(workflow: string): Promise<ReadonlySet<string>>;
}

/**
 * Who may still look for the mark of a step: the step itself when it runs again (`live`); only a retry that goes on from what
 * failed (`ended`); nobody (`settled`).
 */
export type MarkState = "live" | "ended" | "settled";

/** Which runs are wanted; all that is given must hold. */
export interface RunFilter {
  readonly status?: RunStatus;
  readonly key?: string;
  /** Who started it. */
  readonly by?: string;
  /** Part of the id, the key or who started it, in any case of letters. */
  readonly text?: string;
}

/** A place among runs, newest first. Runs do not change theirs, so pages made by it neither skip nor repeat one. */
export interface RunPlace {
  readonly createdAtMs: number;
  /** Without it the place is before all runs of that moment. */
  readonly id?: string;
}
