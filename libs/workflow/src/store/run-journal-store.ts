import type { RunLabels } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";
import type { CodeVersion } from "./code-version.ts";
import type {
  BufferedSignal,
  CancelRequest,
  Failing,
  Failure,
  LogLine,
  RunView,
  RunWait,
  RunWarning,
  StepProgress,
  StepRecord,
} from "./run-record.ts";
import type { UpdateRefusal } from "./run-updates.ts";
import type { AwaitedSpread, SpreadStep } from "./spread-step.ts";

/** The right to write to a run. Every claim raises the epoch, and writes with an older one are rejected. */
export interface Held extends RunRef {
  readonly epoch: number;
  readonly run: RunView;
  readonly steps: ReadonlyMap<string, StepRecord>;
  readonly progress: ReadonlyMap<string, StepProgress>;
  /** Size of the steps with their names. */
  readonly bytes: number;
  /** Number of unconsumed signals. */
  readonly signalCount: number;
  /** Names of the signals for which its last execution waits. */
  readonly awaited: readonly string[];
  /** The oldest unconsumed signal of each of these names. */
  readonly signals: readonly BufferedSignal[];
  /** The input as its schema parsed it, if that differs from the given one. */
  readonly parsedInput?: unknown;
  /** The waits of its last execution. */
  readonly waited: readonly RunWait[];
  readonly failing?: Failing;
  /** The step at which the cancellation was thrown. */
  readonly cancelledAt?: string;
  /** How often the run was cancelled: the latest may not have been thrown yet. */
  readonly cancels: number;
  /** How often a pause of the run was ended. */
  readonly resumes: number;
  /** How often its cancellation was requested, also while an earlier one was pending. */
  readonly cancelCalls: number;
  /** The version of the code that holds the run, if it is not that of the run. */
  readonly code?: number;
  /** The newest version of the code that has recorded a step, if it is not that of the run. */
  readonly continuedBy?: number;
  /** True if the run holds a slot of its workflow, or runs in that of an ancestor. */
  readonly hasSlot?: boolean;
  /** True if the previous execution has not left the run, so that the steps it began are unknown. */
  readonly died: boolean;
  /** Number of signals that the run has refused. Default 0. */
  readonly refusedCount?: number;
  /** Number of lines that the function has logged. Default 0. */
  readonly logged?: number;
  /** How often a retry has continued the ended run. Default 0. */
  readonly reopened?: number;
  /** Raised by each signal and cancellation. */
  readonly wakeSeq: number;
  /** Objects under which the run is in the index of waits. */
  readonly watched: ReadonlySet<string>;
  /** The store's clock at the claim, epoch ms. */
  readonly nowMs: number;
  /** Why a value of the run could not be decoded. The values are then as they are stored, and the run must be blocked. */
  readonly unreadable?: string;
}

export interface Claim {
  /** Grows with each attempt of the run; an older one is rejected. */
  readonly lease: number;
  /** Unique to this attempt. */
  readonly owner: string;
  /** Claims also with a lease that is not newer, because the counter was reset. */
  readonly anew?: boolean;
  /** The code of the worker. Default: it fits every run. */
  readonly code?: CodeVersion;
}

export type Claimed =
  | ({ readonly kind: "held" } & Held)
  | { readonly kind: "missing" | "fenced" | "waiting" | "paused" }
  /** The code does not fit the run, but that of a live worker does. Counts these claims in a row; nothing else was changed. */
  | { readonly kind: "unfit"; readonly times: number }
  | ({ readonly kind: "ended" } & Followers);

/** The code of a worker, with the number of slots per group that its runs have. */
export type AnnouncedCode = CodeVersion & { readonly concurrency?: { readonly runs: number } };

/** The slot that a run needs. */
export interface RunSlot {
  /** Number of slots per group. The one that the last started worker has announced counts. */
  readonly slots: number;
  /** Empty for one group of all runs. */
  readonly group: string;
}

/** The runs and the key that continue when a run ends. */
export interface Followers {
  readonly parent?: RunRef;
  readonly next?: RunRef;
  /** Key to request, as text. */
  readonly notify?: string;
  /** The runs that get its slot. A repeated call does not return them; the sweep wakes them, too. */
  readonly slotTo?: readonly RunRef[];
}

export interface CommitOptions {
  /** The buffered signal that the record consumes. */
  readonly taken?: BufferedSignal;
  /** Id of the update that the signal carries; the record answers it. */
  readonly update?: string;
  /** The number of the cancellation that is thrown at this step. */
  readonly cancels?: number;
}

/** The output of an execution in addition to its records. */
export interface RunOutputText {
  /** All published values by name (JSON). */
  readonly published: string;
}

/** A signal to drop, with the reason for users. */
export interface Refusal {
  readonly signal: BufferedSignal;
  readonly message: string;
}

/** The progress to store; its `untilMs` becomes `delayMs` from now. */
export interface ProgressNote extends Omit<StepProgress, "untilMs"> {
  readonly delayMs: number;
  /** Keeps progress that is stored already. */
  readonly keep?: boolean;
  /** Without a further note of the step, the worker counts as lost after this time, in ms. With `running` only. */
  readonly silentMs?: number;
}

export type Leave =
  | {
      readonly kind: "waiting";
      readonly untilMs?: number;
      readonly waits?: readonly RunWait[];
      /** The registered objects to keep. All others are removed; every other kind removes all. */
      readonly objects?: readonly string[];
    }
  | {
      readonly kind: "blocked";
      readonly reason: string;
      /** The error of the function, if it is the reason. */
      readonly error?: Failure;
      /** True if the reason quotes the message of another error. */
      readonly quotesError?: boolean;
      readonly untilMs: number;
    }
  | { readonly kind: "compensating"; readonly failing: Failing }
  /** The run starts again with this input, without its records, in the newest version that a live worker has. */
  | { readonly kind: "continued"; readonly input: unknown }
  | { readonly kind: "done"; readonly result: unknown }
  | { readonly kind: "failed" | "cancelled"; readonly error: Failure };

/** The mark that a step leaves in an object that it has changed. */
export interface StepMark extends RunRef {
  /** Id of the Redis that has the run. */
  readonly installation: string;
  readonly createdAtMs: number;
  /** Of the run; missing in the first round. */
  readonly round?: number;
  readonly step: string;
  /** True if the step has created the object: its undo may delete it by name. */
  readonly created: boolean;
}

/**
 * Whether a step or its undo may still read its mark: while the run is active (`live`), only if a retry continues after the failure (`ended`),
 * or never (`settled`).
 */
export type MarkState = "live" | "ended" | "settled";

/**
 * Whether the body of a spread step may begin: `over` once its run has ended or begun another round, `held` while the run does not
 * let it begin.
 */
export type SpreadState = "active" | "held" | "over";

/** What an execution waits for. */
interface Awaited {
  /** Names of signals. */
  readonly signals: readonly string[];
  readonly children: readonly RunRef[];
}

/** What an execution may continue with. */
export interface RunNews {
  /** As in {@link Held}. */
  readonly wakeSeq: number;
  readonly cancel?: CancelRequest;
  /** As in {@link Held}. */
  readonly cancels: number;
  /** Number of unconsumed signals. */
  readonly signalCount: number;
  /** The first signal of each awaited name. */
  readonly signals: readonly BufferedSignal[];
  /** The awaited children that have ended. */
  readonly ended: readonly RunRef[];
  readonly isPausing: boolean;
  /** As in {@link Held}. */
  readonly resumes: number;
  /** As in {@link Held}. */
  readonly cancelCalls: number;
}

/** Thrown when another execution has claimed the run: this one changes nothing any more (P8). */
export class FencedError extends Error {
  override readonly name = "FencedError";
}

/**
 * The port of an execution. Every call is atomic and may be repeated if its response was lost. Calls that take `Held` throw
 * {@link FencedError} once another epoch holds the run; writes also once it has ended.
 */
export interface RunJournalStore {
  /** Prefix and cluster, to tell these runs from others with the same names. The same in all processes. */
  readonly scope: string;
  /** A random id created with the first run, so that marks of another Redis are never mistaken for ours. */
  installation(): Promise<string>;
  /**
   * Notes that a worker with this code is live. The first time, sets the number of slots for its runs, and returns the ids of
   * blocked runs, at most 1,000, which the code may continue.
   */
  announce(workflow: string, worker: string, code: AnnouncedCode): Promise<readonly string[]>;
  /** Notes that the worker takes no more runs. */
  retract(workflow: string, worker: string): Promise<void>;
  claim(ref: RunRef, claim: Claim): Promise<Claimed>;
  /**
   * Takes a slot for the run. `waiting`: none is free, and the run was left; it is woken when it has one. `cancelled`: the run was
   * cancelled before it got a slot, and has not begun.
   */
  enter(held: Held, slot: RunSlot): Promise<"entered" | "waiting" | "cancelled">;
  /** True while no other execution has claimed the run, and it has not ended. */
  holds(held: Held): Promise<boolean>;
  statesOf(marks: readonly StepMark[]): Promise<MarkState[]>;
  /** Stores the parsed input once. Returns the stored one, which is another one if that came first. */
  keepInput(held: Held, input: unknown): Promise<unknown>;
  /** Records a step once. Returns the stored record, which is another one if that came first. `warnings` replace those of the run. */
  commit(
    held: Held,
    step: string,
    record: StepRecord,
    options?: CommitOptions & {
      readonly warnings?: readonly RunWarning[];
      readonly output?: RunOutputText;
      /** Called with a new record: whether the run is to be paused. */
      readonly onStatus?: (isPausing: boolean) => void;
    },
  ): Promise<StepRecord>;
  /** Stores output without a record. */
  publish(held: Held, output: RunOutputText): Promise<void>;
  /** Replaces the labels of the run. */
  relabel(held: Held, labels: RunLabels): Promise<void>;
  note(held: Held, step: string, progress: ProgressNote): Promise<StepProgress>;
  /** Returns the oldest unconsumed signals of a name, at most 100. */
  readSignals(ref: RunRef, name: string): Promise<readonly BufferedSignal[]>;
  /** Drops signals of a name whose payload does not fit, counts them, and keeps the last few for users. */
  refuse(held: Held, name: string, refused: readonly Refusal[]): Promise<void>;
  /** Appends lines to the log of the run. `logged` is the number of lines of the function so far. */
  appendLog(held: Held, lines: readonly LogLine[], logged: number): Promise<void>;
  /** Appends lines of the body of a spread step to the log of its run. */
  appendSpreadLog(spread: SpreadStep, lines: readonly LogLine[]): Promise<void>;
  /**
   * Returns whether a spread step may begin a try. One that may not is noted in its run, which wakes it in its next execution.
   * `always`: holds it even if the run is not paused, and makes the run due.
   */
  admitSpread(spread: SpreadStep, hold?: "always"): Promise<SpreadState>;
  /** Returns false once the run of a spread step has ended, or begun another round. */
  isSpreadAwaited(spread: AwaitedSpread): Promise<boolean>;
  /** Reads what has arrived, for the waits of an execution that is at work. */
  news(held: Held, awaited: Awaited): Promise<RunNews>;
  /** Removes the signal of an update, and keeps the refusal for its caller. */
  refuseUpdate(held: Held, taken: BufferedSignal, refusal: UpdateRefusal): Promise<void>;
  /** Enters the run into the index of waits, under each of the objects. */
  watch(held: Held, objects: readonly string[]): Promise<void>;
  /** Forgets the kept end of a key's last run after the retention, unless a start for its object comes first. */
  releaseEnd(workflow: string, key: string): Promise<void>;
  /** Releases the run, lets it continue with another input, or ends it. `compensating` keeps it. */
  leave(held: Held, leave: Leave, output?: RunOutputText): Promise<Followers>;
}
