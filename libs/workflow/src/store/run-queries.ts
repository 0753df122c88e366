import type { RunLabels } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";
import type { RunOrigin } from "./run-actions.ts";
import type { RunHistory } from "./run-history.ts";
import type { Held } from "./run-journal-store.ts";
import type {
  LogLine,
  NumberedCancel,
  RefusedSignals,
  RunOverview,
  RunStatus,
  RunSummary,
  RunView,
  StepRecord,
  UnconsumedSignal,
} from "./run-record.ts";
import type { UpdateAnswer } from "./run-updates.ts";

/** The number of runs per status. Ended runs are counted until their retention is over. */
export type RunCounts = Readonly<Record<RunStatus, number>>;

/** A filter for runs; conditions are combined with AND. */
export interface RunFilter {
  readonly status?: RunStatus;
  /** One of several statuses. */
  readonly statuses?: readonly RunStatus[];
  readonly key?: string;
  /** Author of the start. */
  readonly by?: string;
  /** The run has each of these labels. */
  readonly labels?: RunLabels;
  /** Earliest time of the start, epoch ms. */
  readonly sinceMs?: number;
  /** The run was started before this time, epoch ms. */
  readonly untilMs?: number;
  /** Version of the code that started it. */
  readonly version?: number;
  /** Code of its error. */
  readonly error?: string;
  /** The run that started it; `none` for runs without one. */
  readonly parent?: RunRef | "none";
  /** Part of the id, the key or the author, case-insensitive. */
  readonly text?: string;
}

/** A place among runs, newest first. It never changes for a run, so pages neither skip nor repeat one. */
export interface RunPlace {
  readonly createdAtMs: number;
  /** Default: the place before all runs of that moment. */
  readonly id?: string;
}

interface Overdue {
  /** Ids of runs whose wake-up is overdue and may be lost. */
  readonly runs: readonly string[];
  /** Kept ends of runs, to release once their object is missing. */
  readonly ends: readonly KeptEnd[];
  /** Ended runs that were deleted before the end of their retention, because of their memory limit. */
  readonly dropped: number;
}

/** The end of the last run of a key, kept as long as the object of the run exists. */
export interface KeptEnd {
  /** Of the run. */
  readonly key: string;
  /** Key of the object in its controller's queue, as text. */
  readonly object: string;
}

/** Runs whose body has sent no heartbeat in time. */
export interface Silence {
  /** Ids, with the lease of the execution. */
  readonly lost: readonly { readonly id: string; readonly lease: number }[];
  /** Time until the next body may be silent, in ms; missing if none sends heartbeats. */
  readonly nextMs?: number;
}

/** The records and the unfinished steps of a run, by name. */
export type StoredJournal = Pick<Held, "steps" | "progress">;

/** What a retry of a run keeps, and by what it detects that the run has changed. */
export interface RetryFacts {
  readonly epoch: number;
  readonly origin?: RunOrigin;
  /** Key to request when the run has ended, as text. */
  readonly notify?: string;
}

/** The port for reading runs. */
export interface RunQueries {
  get(ref: RunRef): Promise<RunView | undefined>;
  /** Reads the status without the data of the run. */
  peek(ref: RunRef): Promise<RunOverview | undefined>;
  /** Newest first. `next` is the last place that was read; missing at the end. */
  list(
    workflow: string,
    page: { readonly limit: number; readonly from?: RunPlace; readonly filter: RunFilter },
  ): Promise<{ readonly runs: readonly RunSummary[]; readonly next?: RunPlace }>;
  /** As `list`, without reading runs where an index has the answer. */
  places(
    workflow: string,
    page: { readonly limit: number; readonly from?: RunPlace; readonly filter: RunFilter },
  ): Promise<{ readonly places: readonly Required<RunPlace>[]; readonly next?: RunPlace }>;
  /**
   * Returns the number of runs that fit the filter, after the place `from`. If it must read runs and `isOver` returns true, it returns
   * those counted so far, with the place from which to continue.
   */
  count(
    workflow: string,
    filter: RunFilter,
    how?: { readonly from?: RunPlace; readonly isOver?: () => boolean },
  ): Promise<{ readonly count: number; readonly next?: RunPlace }>;
  steps(ref: RunRef): Promise<ReadonlyMap<string, StepRecord>>;
  journal(ref: RunRef): Promise<StoredJournal>;
  /** Reads all that an execution of the run would read. */
  history(ref: RunRef): Promise<RunHistory | undefined>;
  /** The oldest signals that the run has not consumed; at most 20. */
  unconsumedSignals(ref: RunRef): Promise<readonly UnconsumedSignal[]>;
  refusedSignals(ref: RunRef): Promise<RefusedSignals>;
  /** Returns the last log lines, oldest first. */
  logs(ref: RunRef): Promise<readonly LogLine[]>;
  /** Reads what a retry needs in addition to the run. */
  retryFacts(ref: RunRef): Promise<RetryFacts | undefined>;
  /** Returns the answer to an update; undefined if it has none, or no longer. */
  answerTo(ref: RunRef, updateId: string): Promise<UpdateAnswer | undefined>;
  counts(workflow: string): Promise<RunCounts>;
  /** Returns the background work that is due. Each item is returned again after a while. */
  overdue(workflow: string): Promise<Overdue>;
  /** Returns each run whose worker counts as lost, again after a while as long as it does. */
  silent(workflow: string): Promise<Silence>;
  /** The epochs below which executions of terminated runs must stop. */
  fences(workflow: string): Promise<ReadonlyMap<string, number>>;
  /** The ids of runs that are pausing: their executions may begin no further body. */
  pausing(workflow: string): Promise<ReadonlySet<string>>;
  /** The requested cancellations that have not been thrown yet, by run. */
  cancelling(workflow: string): Promise<ReadonlyMap<string, NumberedCancel>>;
}
