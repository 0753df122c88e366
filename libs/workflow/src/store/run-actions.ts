import type { RunLabels, RunLimits } from "@konverge/core";
import type { OnExisting } from "../define/on-existing.ts";
import type { RunRef } from "../define/run-ref.ts";
import type { Followers } from "./run-journal-store.ts";
import type {
  BufferedSignal,
  CancelRequest,
  EndStatus,
  RetryRequest,
  RunStatus,
  RunView,
} from "./run-record.ts";
import type { PauseAnswer } from "./scripts/pause-runs.ts";
import type { ResumeAnswer } from "./scripts/resume-runs.ts";

/** Longest result or error that is kept of the last run of a key, in bytes. */
export const MAX_KEPT_TEXT = 4_096;

/** Most runs that wait for the active run with their key. */
export const MAX_QUEUED = 1_000;

export interface NewRun extends RunRef {
  readonly version: number;
  readonly input: unknown;
  readonly key?: string;
  readonly labels?: RunLabels;
  readonly onExisting?: OnExisting;
  /** With `queue`: most runs that may wait for the active run. Default 1,000. */
  readonly maxQueued?: number;
  readonly parent?: RunRef & {
    readonly step: string;
    /** Missing in the first round. */
    readonly round?: number;
  };
  /** Author of the start. */
  readonly by?: string;
  /** The time of the schedule for which the run is, epoch ms. */
  readonly scheduledAtMs?: number;
  /** Set if the run repeats another one. */
  readonly retry?: RetryRequest;
  /**
   * The object that the run is for. The run does not start if a run with its key was started for a newer generation of the
   * object.
   */
  readonly origin?: RunOrigin;
  /** Key to request when the run has ended, as text. */
  readonly notify?: string;
}

/** The object that a run is for. */
export interface RunOrigin {
  readonly uid: string;
  /** Missing for kinds without a generation. */
  readonly generation?: number;
  /**
   * Key of the object in its controller's queue, as text. With it, the end of the run is kept as long as the queue has the key,
   * so that the run does not start again after its retention.
   */
  readonly object?: string;
}

/** The end of a run that may have expired. The result or error is missing if it was larger than 4 KiB. */
export type EndedRun = Pick<RunView, "result" | "error"> & { readonly status: EndStatus };

export type Started =
  /** `replaces`: the active run whose cancellation was requested. */
  | { readonly kind: "created"; readonly replaces?: string }
  /** The queue of the key is full; `id` is its last run. */
  | { readonly kind: "full"; readonly id: string }
  /** A run with this id exists. */
  | { readonly kind: "exists"; readonly run: RunView }
  /** Another run with this key is active or for a newer generation, or this run or a retry of it has ended (`end`). */
  | { readonly kind: "attached" | "rejected"; readonly id: string; readonly end?: EndedRun };

export type Terminated =
  /** `ended`: the run had ended before. */
  ({ readonly kind: "terminated" | "ended" } & Followers) | { readonly kind: "missing" };

/** How a run that has ended continues. */
export interface Reopening {
  /** Of the run when its records were read. */
  readonly epoch: number;
  /** Names of the records to drop. */
  readonly drop: readonly string[];
  /** Number of the other records. */
  readonly kept: number;
  readonly author: RetryRequest;
  /** Of the run. */
  readonly key?: string;
}

export type Reopened =
  /** `changed`: the run has another epoch, or has not failed. */
  | { readonly kind: "resumed" | "changed" }
  /** Another run holds the key. */
  | { readonly kind: "rejected"; readonly holder: string };

/** The port for callers that start and control runs. Every call is atomic and may be repeated. */
export interface RunActions {
  start(run: NewRun): Promise<Started>;
  /** `buffered`: stored, but the run waits without it, so it needs no execution. */
  signal(
    ref: RunRef,
    signal: Omit<BufferedSignal, "atMs" | "seq">,
  ): Promise<"stored" | "buffered" | "duplicate" | "ended" | "full" | "missing">;
  /**
   * `pending`: an earlier cancellation was not thrown yet. Only `requested` means a change. With `resumes`, a paused run is
   * resumed for its undo.
   */
  cancel(
    ref: RunRef,
    request: CancelRequest,
    options?: { readonly resumes?: boolean },
  ): Promise<"requested" | "pending" | "compensating" | "ended" | "missing">;
  /** Records that the undo of a step is skipped, unless it has a record. `active`: the run is not being undone. */
  skipUndo(
    ref: RunRef,
    step: string,
    request: CancelRequest,
  ): Promise<"skipped" | "active" | "ended" | "missing">;
  /** Pauses runs; one without an execution at once. Returns an answer per id. `wanted`: skips runs in another status. */
  pause(
    workflow: string,
    ids: readonly string[],
    how: { readonly request: CancelRequest; readonly wanted?: RunStatus },
  ): Promise<readonly PauseAnswer[]>;
  /** Ends the pauses of runs. Returns an answer per id. */
  resume(
    workflow: string,
    ids: readonly string[],
    how?: { readonly wanted?: RunStatus },
  ): Promise<readonly ResumeAnswer[]>;
  /** Continues a failed or cancelled run after the records that are kept. */
  reopen(ref: RunRef, how: Reopening): Promise<Reopened>;
  /** Lets undos that have failed be tried again at the next execution. */
  retryUndos(ref: RunRef): Promise<void>;
  /** Raises the limits of the run's records. `low`: a limit is below the one that was set before; nothing was changed. */
  raise(ref: RunRef, limits: RunLimits): Promise<"raised" | "low" | "ended" | "missing">;
  /** Ends the run in any status, without its undo. A running execution is fenced. */
  terminate(ref: RunRef, request: CancelRequest): Promise<Terminated>;
  /** Ends a cancelled run that is queued behind another one. `active`: it is no longer queued; nothing was changed. */
  endQueued(ref: RunRef, request: CancelRequest): Promise<Terminated | { readonly kind: "active" }>;
}
