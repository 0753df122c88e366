import type { Limits, ObjectKey, PayloadCodec, RunLabels, RunLimits } from "@konverge/core";
import type { QueueWorker, RestoreFence } from "@konverge/queue";
import type { RedisTarget } from "@konverge/redis";
import type { ClusterAccess } from "./define/cluster-access.ts";
import type { AnyWorkflow, Workflow } from "./define/define-workflow.ts";
import type { RunCursor, RunPage } from "./store/list-runs.ts";
import type { NamedRecord, RunHistory, JournalView } from "./store/run-history.ts";
import type { RunFilter } from "./store/run-queries.ts";
import type { RetryRunOptions } from "./store/retry-run.ts";
import type { Schedule } from "./schedules/define-schedule.ts";
import type { Schedules } from "./schedules/schedules.ts";
import type { Scheduler } from "./schedules/start-scheduler.ts";
import type { WaitWatcher, WaitWatcherSettings } from "./waits/start-wait-watcher.ts";
import type { WaitedKind } from "./store/wait-names.ts";
import type { BulkRequest, BulkResult, CountRequest, CountResult } from "./bulk-actions.ts";
import type { CancelEffect } from "./cancel-effect.ts";
import type { PauseEffect } from "./pause-effect.ts";
import type { RunObserver } from "./journal/run-observer.ts";
import type { RunTracing } from "./journal/run-tracing.ts";
import type { RunRef } from "./define/run-ref.ts";
import type { OnExisting } from "./define/on-existing.ts";
import type { EndedRun, RunOrigin } from "./store/run-actions.ts";
import type { RunCounts } from "./store/run-queries.ts";
import type {
  RefusedSignals,
  LogLine,
  RunOverview,
  RunView,
  RunWarning,
  UnconsumedSignal,
} from "./store/run-record.ts";
import type { UpdateAnswer } from "./store/run-updates.ts";

export interface WorkflowsOptions {
  readonly redis: RedisTarget;
  /** Name of the cluster; part of all names in Redis. Default `default`. */
  readonly cluster?: string;
  /** First part of all names in Redis. Default `konverge`. */
  readonly prefix?: string;
  /** The same as for the queues of this cluster's controllers. Default 1. */
  readonly shards?: number;
  /** How long a run stays with an unresponsive worker, in ms. Default 10 s. The same in all processes. */
  readonly leaseMs?: number;
  /** How long a run is kept after its end, in ms. Default 7 days. The same in all processes. */
  readonly retentionMs?: number;
  /** Default of `retention.bytes` of the workflows that this process executes. Default 256 MiB. */
  readonly limitBytes?: number;
  /**
   * Encodes the values of runs in Redis. A process that executes runs needs the codec of their values. In one that only starts and
   * reads runs, values that cannot be decoded stay encoded. Default: none.
   */
  readonly codec?: PayloadCodec;
  /** Keeps workers from executing runs in a Redis that was restored. Default: none. */
  readonly fence?: RestoreFence;
  /** Resolves with false while schedules must not start runs. Default: they may. */
  readonly mayStart?: () => Promise<boolean>;
  /** Called with background errors, such as a lost connection. Default: none. */
  readonly onError?: (error: Error) => void;
  /** Called when a run has reached half of a limit: once per run and limit. Default: none. */
  readonly onWarning?: (run: RunRef, warning: RunWarning) => void;
  /** Called with each line that a run logs in this process. Default: none. */
  readonly onLog?: (run: RunRef, line: LogLine) => void;
  /** Traces requests, executions, steps and waits. Default: none. */
  readonly tracing?: RunTracing;
}

/** The part of a workflow that starts a run. Without the schema, only the worker checks the input. */
export type StartedWorkflow<I> = Pick<Workflow<I>, "name" | "version" | "input">;

export interface StartOptions {
  /** Id of the run; a second start with the same input returns the existing run, and is rejected otherwise. Default: a UUID. */
  readonly id?: string;
  /** At most one run with this key is active at a time, such as `rollout:team-a/web`. */
  readonly key?: string;
  /** Runs are found by them; at most 10. */
  readonly labels?: RunLabels;
  /**
   * If another run holds the key: return that run (default), fail, cancel it and start after it has ended, or start after it
   * and all runs that wait for it. @throws KonvergeError `queue_full` if 1,000 runs wait
   */
  readonly onExisting?: OnExisting;
  /** Author of the start; stored in the run. */
  readonly by?: string;
  /**
   * The object that the run is for. If a run with the same key was started for a newer generation of the object, no run starts
   * and the newer one is returned. With `object`, the same holds for a run of this id that has ended, also after its retention.
   */
  readonly origin?: RunOrigin;
  /** Key of a controller of the same cluster, to request when the run has ended. */
  readonly notify?: ObjectKey;
  /** W3C trace context of the caller. The first execution has a link to it. */
  readonly traceparent?: string;
}

export interface StartedRun {
  readonly id: string;
  /** False for an existing run. */
  readonly created: boolean;
  /** Creation of an existing run with this id, epoch ms by Redis's clock. */
  readonly createdAtMs?: number;
  /** The end of the returned run, which may have expired. Only for starts with an `origin`. */
  readonly end?: EndedRun;
}

export interface SignalMessage {
  readonly payload?: unknown;
  /** Each id is delivered once. Default: a UUID. */
  readonly id?: string;
  /** The sender; stored in the journal. */
  readonly by?: string;
}

export interface RunWorkerSettings {
  readonly workflows: readonly AnyWorkflow[];
  /** Concurrent executions per workflow. Default 16. */
  readonly concurrency?: number;
  /** Clusters of the Kubernetes verbs. Default: none; the verbs are rejected. */
  readonly clusters?: ClusterAccess;
  /** Largest record or result of a run, in bytes. Default 1 MiB. */
  readonly recordLimitBytes?: number;
  /** Time between two checks of a blocked run, in ms. Default 1 min. */
  readonly recheckMs?: number;
  /** Time between two searches for runs with a lost wake-up, in ms. Default 5 s. */
  readonly sweepEveryMs?: number;
  /** Limits that steps may use. Default: none; steps with a limit are rejected. */
  readonly limits?: Limits;
  /** Observes the runs of this process. Default: none. */
  readonly observer?: RunObserver;
  /** Unique per process. Default: host name and process id. */
  readonly workerId?: string;
}

/** Starts, reads, controls and executes runs. */
export interface Workflows {
  /**
   * Resolves once Redis has the run and the request for its first execution.
   * @throws KonvergeError `run_exists`, `input_mismatch`, `invalid_request`, `redis_unavailable`
   */
  start<I>(
    workflow: StartedWorkflow<I>,
    input: NoInfer<I>,
    options?: StartOptions,
  ): Promise<StartedRun>;
  get(ref: RunRef): Promise<RunView | undefined>;
  /** Reads the status; cheap enough for ten calls per second. */
  peek(ref: RunRef): Promise<RunOverview | undefined>;
  /** Lists the runs of one or several workflows, newest first. */
  list(
    workflows: string | readonly string[],
    page?: { readonly limit?: number; readonly from?: RunCursor; readonly filter?: RunFilter },
  ): Promise<RunPage>;
  /** Returns the number of runs per status. */
  counts(workflow: string): Promise<RunCounts>;
  /** Returns the records of a run, in the order of recording. */
  steps(ref: RunRef): Promise<readonly NamedRecord[]>;
  /** Returns the records of a run as `steps` does, and its unfinished steps. */
  journal(ref: RunRef): Promise<JournalView>;
  /** Reads all that an execution of the run would read, for a replay elsewhere. */
  history(ref: RunRef): Promise<RunHistory | undefined>;
  /** Returns the oldest unconsumed signals: those the run has not reached, or whose name it never waits for; at most 20. */
  unconsumedSignals(ref: RunRef): Promise<readonly UnconsumedSignal[]>;
  /** Returns the signals that the run has dropped because their payload did not fit: the number, and the last 10. */
  refusedSignals(ref: RunRef): Promise<RefusedSignals>;
  /** Stores a signal for a run that has not ended. @throws KonvergeError `not_found`, `run_ended`, `signals_full` */
  signal(ref: RunRef, name: string, message?: SignalMessage): Promise<void>;
  /**
   * Sends an update and returns its id. Repeating an id sends nothing; `answerTo` has the answer.
   * @throws KonvergeError as `signal`
   */
  update(ref: RunRef, name: string, message?: SignalMessage): Promise<{ readonly id: string }>;
  /** Returns the last log lines of a run, oldest first; at most 200. */
  logs(ref: RunRef): Promise<readonly LogLine[]>;
  /** Returns the answer to an update, for 7 days; undefined until the run has handled it. */
  answerTo(ref: RunRef, updateId: string): Promise<UpdateAnswer | undefined>;
  /**
   * Requests the cancellation: the current verb throws, and the recorded steps are undone. A run that has caught it can be
   * cancelled again; if it waits for children, they are. A paused run is resumed for its undo, and one that is queued behind
   * another ends at once. Returns whether it has an effect. @throws as `signal`
   */
  cancel(
    ref: RunRef,
    request?: { readonly by?: string; readonly reason?: string },
  ): Promise<CancelEffect>;
  /**
   * Pauses a run: no body begins and nothing is consumed until it is resumed. Running bodies end first, and the run is `pausing`
   * until then. Signals are kept, and what comes due continues on resume. Children continue. @throws as `signal`
   */
  pause(
    ref: RunRef,
    request?: { readonly by?: string; readonly reason?: string },
  ): Promise<PauseEffect>;
  /** Ends the pause of a run, which continues at once. @throws as `signal` */
  resume(ref: RunRef): Promise<PauseEffect>;
  /**
   * Ends a run in any status at once, without its undo; {@link undosLeft} of its steps returns the recorded steps left. A running body is
   * aborted and records nothing. @throws as `signal`
   */
  terminate(
    ref: RunRef,
    request?: { readonly by?: string; readonly reason?: string },
  ): Promise<void>;
  /**
   * Raises the limits of one run, in all its rounds; the higher ones of these and the workflow's count. A blocked run continues.
   * @throws KonvergeError `invalid_request`, and as `signal`
   */
  raise(ref: RunRef, limits: RunLimits): Promise<void>;
  /**
   * Retries a failed or cancelled run, or rechecks a blocked one. Returns the run that continues: a new one, or with
   * `fromFailed` the same one after its successful steps.
   * @throws KonvergeError `not_found`, `run_active`, `run_ended`, `run_exists`, `run_compensated`
   */
  retry(ref: RunRef, options?: RetryRunOptions): Promise<RunRef>;
  /** Counts the runs that a bulk action would visit. @throws KonvergeError `invalid_request` */
  countMatching(workflows: readonly string[], request: CountRequest): Promise<CountResult>;
  /**
   * Acts on all runs that match, newest first per workflow. Runs that start later are not visited. An error ends it; the runs
   * visited until then are changed, and the same request continues with the others.
   * @throws KonvergeError `invalid_request`, `redis_unavailable`
   */
  actOnMatching(workflows: readonly string[], request: BulkRequest): Promise<BulkResult>;
  work(settings: RunWorkerSettings): QueueWorker;
  /**
   * Wakes runs when the objects of a `w.waitFor` change. Only the holder of the Lease watches. Without a watcher, runs recheck
   * their objects every 30 s.
   */
  watch(settings: WaitWatcherSettings): WaitWatcher;
  /** Starts the due runs of these schedules. Any number of processes may do so; each time has one run. */
  schedule(schedules: readonly Schedule[]): Scheduler;
  /** The schedules that workers have announced. */
  readonly schedules: Schedules;
  /** Returns the number of waits per kind, most first. */
  waitedKinds(): Promise<readonly (WaitedKind & { readonly waits: number })[]>;
  close(): Promise<void>;
}
