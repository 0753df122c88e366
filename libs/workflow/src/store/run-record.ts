import { defined, type RunLabels, type RunLimits, type RunStatus } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";
import { updateSignal } from "./run-updates.ts";

export { RUN_STATUSES, type RunStatus } from "@konverge/core";

export type EndStatus = Extract<RunStatus, "done" | "failed" | "cancelled">;

export function isEndStatus(status: string): status is EndStatus {
  return status === "done" || status === "failed" || status === "cancelled";
}

/** The kind of a journal entry. If the code finds another kind under a recorded name, the code has changed. */
export type StepKind =
  | "step"
  | "sleep"
  | "signal"
  | "child"
  | "now"
  | "undo"
  | "update"
  | "wait"
  | "race";

/** The stored part of a step's, run's or child's error. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  /** Where it was thrown, as `at function (file:line:column)`; of the error, then of its causes. */
  readonly frames?: string[];
}

/** A failed try of a step that was tried again. */
export interface FailedTry {
  /** Its number, from 1; missing if the try is not counted. */
  readonly attempt?: number;
  /** Its end by Redis's clock, epoch ms. */
  readonly atMs: number;
  readonly code: string;
  /** At most 200 characters. */
  readonly message: string;
}

/** Records keep this many failed tries of a step, the last ones. */
const MOST_TRIES = 5;
const MAX_TRY_MESSAGE = 200;

/** Returns the failed tries to keep. */
export function withFailedTry(tries: readonly FailedTry[] = [], failed: FailedTry): FailedTry[] {
  const message = failed.message.slice(0, MAX_TRY_MESSAGE);
  return [...tries, { ...failed, message }].slice(-MOST_TRIES);
}

/** A journal entry: written once, never changed. */
export interface StepRecord {
  readonly kind: StepKind;
  readonly value?: unknown;
  readonly error?: Failure;
  /** The planned end of a sleep by Redis's clock, epoch ms. */
  readonly untilMs?: number;
  /** Completed attempts of the body. */
  readonly attempts?: number;
  /** The last failed tries before the one that ended the step, oldest first; at most 5. */
  readonly tries?: readonly FailedTry[];
  /** True if the step failed and has changed nothing, so that it is not undone. */
  readonly noEffect?: boolean;
  /** True if the code has an undo for it. */
  readonly hasUndo?: boolean;
  /** Set for an undo that did not run because an operator skipped it. */
  readonly skipped?: CancelRequest;
  /** The sender of a signal. */
  readonly by?: string;
  /** The run of an ended child. */
  readonly child?: RunRef;
  /** The branch of a race that was first. */
  readonly branch?: string;
  /** The step or child whose failure ended that branch. */
  readonly failedStep?: string;
  /** The steps at work in the other branches of the race. Their bodies are aborted, and may have had an effect. */
  readonly lost?: readonly string[];
  /** When its first attempt or its wait began, by Redis's clock, epoch ms. Later than that if the worker died in it. */
  readonly startedAtMs?: number;
  /** True for the first record after the loss of a worker, which may have begun this step before. */
  readonly workerLost?: boolean;
  /** Place in the order of commits, from 1; set by the store. */
  readonly seq?: number;
  /** Time of the commit by Redis's clock, epoch ms; set by the store. */
  readonly atMs?: number;
}

/** Code of a step whose body was aborted because its branch has lost a race. */
export const RACE_LOST = "race_lost";

/** A wait of a waiting run: for a signal, a child, the end of a sleep, objects, or the next attempt of a step. */
export interface RunWait {
  /** Name of the step. */
  readonly step: string;
  readonly kind: StepKind;
  /** Begin, epoch ms. */
  readonly sinceMs?: number;
  /** Deadline, epoch ms. */
  readonly untilMs?: number;
  /** The unmet conditions of the awaited objects at the last check. */
  readonly message?: string;
  /** The call in the code of the function, as `at name (file:line:column)`. */
  readonly position?: string;
  /** The run of the awaited child. */
  readonly child?: RunRef;
  /** The limit that has no permit now. */
  readonly limit?: string;
  /** The run as which the spread step is stored. */
  readonly spread?: RunRef;
}

/** What the body of a step has last reported. */
export interface Heartbeat {
  /** Plain JSON of at most 16 KiB; missing if the body only showed that it is at work. */
  readonly progress?: unknown;
  readonly attempt: number;
  /** By Redis's clock, epoch ms. */
  readonly atMs: number;
}

/** The progress of an unfinished step. */
export interface StepProgress {
  readonly attempts: number;
  /** Consecutive attempts that failed because of the API server and are not counted. */
  readonly uncounted?: number;
  /** True if an attempt may have had an effect. */
  readonly mayHaveActed?: boolean;
  /** True if the code has an undo for the step. */
  readonly hasUndo?: boolean;
  /** How the last attempt ended, for users. */
  readonly message?: string;
  /** The last failed tries, oldest first; at most 5. */
  readonly tries?: readonly FailedTry[];
  /** The number of tries after which the step fails; missing without a limit. */
  readonly maxAttempts?: number;
  /** For a child or spread step: true once it has ended. */
  readonly childEnded?: boolean;
  /** For a spread step: true if it waits for an execution of the run, which wakes it. */
  readonly heldBack?: boolean;
  /** The last one of its body. */
  readonly heartbeat?: Heartbeat;
  /**
   * Number of the attempt at work, for a step with a timeout of heartbeats. If another execution reads it, the worker of the attempt
   * was lost.
   */
  readonly running?: number;
  /** When its next attempt is due, or its wait ends; by Redis's clock, epoch ms. */
  readonly untilMs: number;
}

/** A signal that the run has not consumed. */
export interface BufferedSignal {
  /** Place in the order of sending; set by the store. */
  readonly seq: number;
  readonly name: string;
  readonly id: string;
  readonly payload?: unknown;
  /** Why the payload is not a value that the codec has encoded. The signal is then refused. */
  readonly forged?: string;
  readonly by?: string;
  readonly atMs: number;
}

/** A signal that the run has not consumed, without its payload, which may be confidential. */
export type UnconsumedSignal = Omit<BufferedSignal, "payload" | "seq" | "forged">;

/** A signal whose payload did not fit the schema, so that it was dropped. */
export interface RefusedSignal extends UnconsumedSignal {
  readonly message: string;
}

/** The refused signals of a run: their number, and the last few, newest first. */
export interface RefusedSignals {
  readonly count: number;
  readonly last: readonly RefusedSignal[];
}

export function withoutPayload({ name, id, by, atMs }: BufferedSignal): UnconsumedSignal {
  return { name, id, ...defined({ by }), atMs };
}

/** Suffix of a repeated name. */
export const REPEAT: RegExp = /#\d+$/;

/** Most waits that are stored for a waiting run. */
export const MAX_WAITS = 20;

/** Whether no other signal can continue a run with these stored waits. */
export function areAllWaits(waits: readonly RunWait[] | undefined): boolean {
  return waits !== undefined && waits.length < MAX_WAITS;
}

/** Returns the names of the signals among the waits. */
export function awaitedSignals(waits: readonly RunWait[] = []): string[] {
  const names = waits.flatMap(({ kind, step }) => {
    const name = step.replace(REPEAT, "");
    if (kind === "update") return [updateSignal(name)];
    return kind === "signal" ? [name] : [];
  });
  return [...new Set(names)];
}

/** A line of a run's log. */
export interface LogLine {
  readonly atMs: number;
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  /** The step whose body has logged it; missing for the function. */
  readonly step?: string;
  readonly attempt?: number;
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** A warning that a run is near a limit, or that its code has changed. */
export interface RunWarning {
  readonly code: "many_steps" | "many_bytes" | "code_changed";
  /** What is wrong, with a suggested fix, for users. */
  readonly message: string;
}

export interface CancelRequest {
  readonly by?: string;
  readonly reason?: string;
}

/** The pause of a run. */
export interface RunPause extends CancelRequest {
  /** Epoch ms. */
  readonly atMs: number;
}

/** The latest cancellation of a run. A run that has caught one may be cancelled again. */
export interface NumberedCancel {
  /** From 1. */
  readonly number: number;
  readonly request: CancelRequest;
}

/** Returns the record of an undo that an operator skipped. */
export function skippedUndo(skipped: CancelRequest): StepRecord {
  return { kind: "undo", skipped };
}

/** Returns the error of a cancelled run. */
export function cancellationOf({ by, reason }: CancelRequest): Failure {
  const author = by === undefined ? "" : ` by ${by}`;
  const why = reason === undefined ? "" : `: ${reason}`;
  return { code: "cancelled", message: `the run was cancelled${author}${why}` };
}

/** Returns the error of a terminated run. */
export function terminationOf({ by, reason }: CancelRequest): Failure {
  const author = by === undefined ? "" : ` by ${by}`;
  const why = reason === undefined ? "" : `: ${reason}`;
  return { code: "terminated", message: `the run was terminated${author}${why}` };
}

/** The author and reason of a retry. */
export interface RetryRequest extends CancelRequest {
  /** Id of the run of the same workflow that this run repeats. Missing if the run itself continues. */
  readonly originalRun?: string;
}

/** The round of a run that has continued with another input. */
interface RunRound {
  /** From 2; missing in the first round. */
  readonly round?: number;
  /** Epoch ms. */
  readonly roundStartedAtMs?: number;
}

/** The wait of a run for a slot of its workflow. */
export interface SlotWait {
  /** Its key, or the value of its label; missing if all runs of the workflow share the slots. */
  readonly group?: string;
  /** Number of runs before it; missing in lists. */
  readonly ahead?: number;
}

/** A run without its input and result. Times are epoch ms by Redis's clock. */
export interface RunSummary extends RunRef, RunRound {
  readonly version: number;
  readonly status: RunStatus;
  readonly error?: Failure;
  /** Why the run is blocked, with a suggested fix. */
  readonly blockedReason?: string;
  /** Since when it is blocked; missing for runs that an older version blocked. */
  readonly blockedAtMs?: number;
  /** The error of the function that blocks the run. */
  readonly blockedError?: Failure;
  readonly key?: string;
  /** Runs are found by them. */
  readonly labels?: RunLabels;
  readonly parent?: RunRef;
  /** Limits that an operator has set for this run; the higher ones of these and the workflow's count. */
  readonly limits?: RunLimits;
  /** Author of the start: the name of a token, `controller <name>/<object>`, `schedule <name>`. */
  readonly by?: string;
  readonly cancel?: CancelRequest;
  /** Set while the run is paused, or about to be. */
  readonly pause?: RunPause;
  /** Set if an operator ended the run without its undo. */
  readonly terminated?: CancelRequest;
  /** Set if the run repeats another one, or continued after a failure. */
  readonly retry?: RetryRequest;
  /** The time of the schedule for which the run was started. */
  readonly scheduledAtMs?: number;
  readonly createdAtMs: number;
  readonly startedAtMs?: number;
  readonly endedAtMs?: number;
  /** When a waiting run continues without an event. */
  readonly waitingUntilMs?: number;
  /** Set while the run waits for a slot of its workflow. */
  readonly slotWait?: SlotWait;
  /** The waits of a run that waits, or that waited when it was paused; at most 20. */
  readonly waits?: readonly RunWait[];
  /** Time of the last heartbeat that was stored. */
  readonly beatAtMs?: number;
  /** Each is given once: at half of a limit, and for each change of the code. */
  readonly warnings?: readonly RunWarning[];
}

export interface RunView extends RunSummary {
  readonly input: unknown;
  /** The input of the first round, in a later one. */
  readonly firstInput?: unknown;
  readonly result?: unknown;
  /** The values that the function has published, by name. */
  readonly published?: Readonly<Record<string, unknown>>;
}

/** The part of a run that shows whether anything has happened. */
export interface RunOverview {
  readonly status: RunStatus;
  /** From 2; missing in the first round. */
  readonly round?: number;
  /** Number of recorded steps. */
  readonly steps: number;
  /** Time of the last heartbeat, epoch ms. */
  readonly beatAtMs?: number;
  readonly hasEnded: boolean;
}

/** The final status of a failing run, stored before the first undo so that a crash cannot change it. */
export interface Failing {
  readonly status: "failed" | "cancelled";
  readonly error: Failure;
}
