import type { ObjectKey } from "@konverge/core";
import type { QueueWorker } from "@konverge/queue";
import type { RedisTarget } from "@konverge/redis";
import type { ClusterAccess } from "./define/cluster-access.ts";
import type { AnyWorkflow, Workflow } from "./define/define-workflow.ts";
import type { RunCursor, RunPage } from "./store/list-runs.ts";
import type { RunFilter } from "./store/run-queries.ts";
import type { RetryRunOptions } from "./store/retry-run.ts";
import type { Schedule } from "./schedules/define-schedule.ts";
import type { ScheduleView } from "./schedules/schedule-book.ts";
import type { Scheduler } from "./schedules/start-scheduler.ts";
import type { WaitWatcher, WaitWatcherSettings } from "./waits/start-wait-watcher.ts";
import type { WaitedKind } from "./store/wait-names.ts";
import type { RunObserver } from "./journal/run-observer.ts";
import type { RunRef } from "./define/run-ref.ts";
import type { NewRun, OnExisting } from "./store/run-actions.ts";
import type { RunCounts } from "./store/run-queries.ts";
import type {
  RunOverview,
  RunView,
  RunWarning,
  StepRecord,
  UnconsumedSignal,
} from "./store/run-record.ts";

export interface WorkflowsOptions {
  readonly redis: RedisTarget;
  /** What the runs work on; part of all names. Default `default`. */
  readonly cluster?: string;
  /** First part of all names in Redis. Default `konverge`. */
  readonly prefix?: string;
  /** As in the queues of this cluster's controllers. Default 1. */
  readonly shards?: number;
  /** How long a run stays with a worker that says nothing, in ms. Default 10 s. The same in all processes. */
  readonly leaseMs?: number;
  /** How long a run is kept after its end, in ms. Default 7 days. The same in all processes. */
  readonly retentionMs?: number;
  /** Told what goes wrong in the background, such as a lost connection. Default: nobody. */
  readonly onError?: (error: Error) => void;
  /** Told when a run has reached half of a bound at which it fails: once for each run and bound. Default: nobody. */
  readonly onWarning?: (run: RunRef, warning: RunWarning) => void;
}

/** As much of a workflow as starts a run. Without its schema the worker is the first who checks the input. */
export type StartedWorkflow<I> = Pick<Workflow<I>, "name" | "version" | "input">;

export interface StartOptions {
  /** Names the run; starting it again answers the run that is there. Default: a UUID. */
  readonly id?: string;
  /** At most one run with this key goes on at a time, such as `rollout:team-a/web`. */
  readonly key?: string;
  /**
   * What happens when another run holds the key: answer that one (default), refuse, or cancel it and start when it has ended.
   */
  readonly onExisting?: OnExisting;
  /** Who starts it; kept in the run. */
  readonly by?: string;
  /**
   * The object that it is for. Once a run with the same key was started for a newer generation of that object, this one does
   * not begin, and the newer one is answered.
   */
  readonly origin?: NewRun["origin"];
  /** Key of a controller of the same cluster, to request when the run has ended. */
  readonly notify?: ObjectKey;
}

export interface StartedRun {
  readonly id: string;
  /** False when the answer is a run that was there. */
  readonly created: boolean;
  /** Of one with this id that was there: since when, epoch ms by Redis's clock. */
  readonly createdAtMs?: number;
}

export interface SignalMessage {
  readonly payload?: unknown;
  /** The same id is delivered once. Default: a UUID. */
  readonly id?: string;
  /** Who sends it; kept in the journal. */
  readonly by?: string;
}

export interface RunWorkerSettings {
  readonly workflows: readonly AnyWorkflow[];
  /** Executions at once, of each workflow. Default 16. */
  readonly concurrency?: number;
  /** Where Kubernetes verbs go. Default: nowhere, and they are refused. */
  readonly clusters?: ClusterAccess;
  /** Told what the runs of this process do. Default: nobody. */
  readonly observer?: RunObserver;
  /** Unique per process. Default: made of host and process id. */
  readonly workerId?: string;
}

/** Starts, watches and steers runs, and runs them. */
export interface Workflows {
  /**
   * Resolves once Redis has the run and its first activation was asked for.
   * @throws KonvergeError `run_exists`, `invalid_request`, `redis_unavailable`
   */
  start<I>(
    workflow: StartedWorkflow<I>,
    input: NoInfer<I>,
    options?: StartOptions,
  ): Promise<StartedRun>;
  get(ref: RunRef): Promise<RunView | undefined>;
  /** Cheap enough to be asked ten times a second. */
  peek(ref: RunRef): Promise<RunOverview | undefined>;
  /** Newest first, of one or several workflows, as far as they fit the filter. */
  list(
    workflows: string | readonly string[],
    page?: { readonly limit?: number; readonly from?: RunCursor; readonly filter?: RunFilter },
  ): Promise<RunPage>;
  /** How many runs of a workflow stand how. */
  counts(workflow: string): Promise<RunCounts>;
  /** What is recorded of a run, in the order of recording. */
  steps(ref: RunRef): Promise<readonly (StepRecord & { readonly name: string })[]>;
  /** What was sent first, of the signals that a run has not taken: not yet come to, or of a name that it never waits for; at most 20. */
  unconsumedSignals(ref: RunRef): Promise<readonly UnconsumedSignal[]>;
  /** Stores a signal for a run that has not ended. @throws KonvergeError `not_found`, `run_ended`, `queue_full` */
  signal(ref: RunRef, name: string, message?: SignalMessage): Promise<void>;
  /** Orders the cancellation: the verb that the run is at throws, and what was done is undone. @throws as `signal` */
  cancel(ref: RunRef, request?: { readonly by?: string; readonly reason?: string }): Promise<void>;
  /**
   * Tries a run again that failed or was cancelled, and looks at a stuck one at once. Answers the run that goes on: another
   * one, unless `fromFailed` says that this one goes on behind what succeeded.
   * @throws KonvergeError `not_found`, `run_active`, `run_ended`, `run_exists`, `run_compensated`
   */
  retry(ref: RunRef, options?: RetryRunOptions): Promise<RunRef>;
  work(settings: RunWorkerSettings): QueueWorker;
  /**
   * Wakes runs when objects change that they wait for (`w.waitFor`). Of all that do, the one that holds the Lease watches. Without
   * any, runs look at their objects every 30 s.
   */
  watch(settings: WaitWatcherSettings): WaitWatcher;
  /** Starts what is due of these schedules. Any number of processes may do so at once: each time has one run. */
  schedule(schedules: readonly Schedule[]): Scheduler;
  /** All schedules at which some process has looked within a week. */
  schedules(): Promise<readonly ScheduleView[]>;
  /** What runs wait for, by kind, most first. */
  waitedKinds(): Promise<readonly (WaitedKind & { readonly waits: number })[]>;
  close(): Promise<void>;
}
