import type { Duration, NamedLimits, PayloadCodec } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import type { ClusterAccess } from "../define/cluster-access.ts";
import type { AnyWorkflow } from "../define/define-workflow.ts";
import type { OnExisting } from "../define/on-existing.ts";
import type { RetryRunOptions } from "../store/retry-run.ts";
import type { LogLine, RunView, StepRecord } from "../store/run-record.ts";
import type { RunHistory } from "../store/run-history.ts";
import type { Schedule } from "../schedules/define-schedule.ts";
import type { BackfillOptions, ScheduleDetail, TriggerOptions } from "../schedules/schedules.ts";
import type { TestHeartbeat } from "./test-faults.ts";

/** The options of {@link testWorkflow}. */
export interface TestWorkflowOptions {
  /** The clock at the start, epoch ms. Default 0. */
  readonly startMs?: number;
  /** Of the run, for `startOther`. Default: none. */
  readonly key?: string;
  /** Workflows that `w.child` may start. */
  readonly children?: readonly AnyWorkflow[];
  /**
   * Ends the execution after each record, so that the function is replayed after every step. Reveals code between steps that
   * is not deterministic. Default false.
   */
  readonly replayEveryStep?: boolean;
  /** The API server of the cluster `default`, which is the run's cluster. Default: none; Kubernetes calls are rejected. */
  readonly kube?: KubeClient;
  /** Several API servers, instead of `kube`. */
  readonly clusters?: ClusterAccess;
  /** Encodes the values of the run, as in production. Default: none. */
  readonly codec?: PayloadCodec;
  /** The limits of steps, as in the configuration. Default: none; steps with a limit are rejected. */
  readonly limits?: NamedLimits;
}

/** The options of `retry` of a {@link TestRun}. */
export type TestRetryOptions = Pick<RetryRunOptions, "fromFailed" | "skipUndo">;

/** A child of a run in memory. Every call finds the child by its step, after everything has settled. @throws Error without a child */
export interface TestChild {
  /** Returns the run of the child. */
  run(): Promise<RunView>;
  /** Returns its records by name. */
  steps(): Promise<ReadonlyMap<string, StepRecord>>;
  /** Sends a signal to the child. Returns its run. */
  signal(name: string, payload?: unknown): Promise<RunView>;
  /** Requests the cancellation of the child. Returns its run. */
  cancel(): Promise<RunView>;
  /** Returns a child of the child, by the name of its step. */
  child(step: string): TestChild;
}

/** A schedule whose runs start when the clock of the test reaches their times. It follows the rules of production. */
export interface TestSchedule {
  /** Returns the schedule with its next times, after everything has settled. */
  get(): Promise<ScheduleDetail>;
  /** Returns its runs in the order of their starts, including those of triggers and backfills. */
  runs(): Promise<readonly RunView[]>;
  /** Returns one of its runs by its index in `runs`. Default: the last. The calls of the result throw if there is no such run. */
  run(index?: number): TestChild;
  /** Pauses the schedule. The times in between are skipped. */
  pause(): Promise<void>;
  /** Continues with the next time. */
  resume(): Promise<void>;
  /** Starts a run now, even if the schedule is paused. @throws KonvergeError `queue_full` */
  trigger(options?: Pick<TriggerOptions, "overlap">): Promise<RunView>;
  /** Starts the runs of past times that have none. @throws KonvergeError `invalid_request`, `queue_full` */
  backfill(options: Pick<BackfillOptions, "fromMs" | "toMs" | "overlap">): Promise<void>;
}

/**
 * A run in memory with a manual clock. Every call resolves when the run and its children wait or have ended. It rejects if the
 * run has ended without reaching a step named by `failStep`, `crashAfter`, `crashIn` or `crashAtHeartbeat`.
 */
export interface TestRun {
  /** Returns the run. */
  run(): Promise<RunView>;
  /** Returns the records by name. */
  steps(): Promise<ReadonlyMap<string, StepRecord>>;
  /** Returns what `konverge run export` writes of a run, for `replay`. */
  history(): Promise<RunHistory>;
  /** Steps and undos whose body was started, in order. */
  readonly bodies: readonly string[];
  /** The heartbeats of bodies, in order. Each is stored at once. */
  readonly heartbeats: readonly TestHeartbeat[];
  /** Runs until everything waits, and rechecks the awaited objects. The first call of any kind does it too. */
  settle(): Promise<RunView>;
  /** Advances the clock, and stops at each time at which a run continues. */
  advance(duration: Duration): Promise<RunView>;
  /**
   * Advances the clock while no worker runs: during this time, no run continues and no schedule starts a run.
   * @throws Error while a body is held
   */
  outage(duration: Duration): Promise<RunView>;
  /**
   * Starts the runs of a schedule from now on, in addition to the run of this test. The first call that settles registers the
   * schedule, as a worker does; its workflow is then part of the test.
   * @throws Error for a second schedule with its name
   */
  schedule(schedule: Schedule): TestSchedule;
  /** Sends a signal to the run. */
  signal(name: string, payload?: unknown): Promise<RunView>;
  /** Returns the log of the run. */
  logs(): Promise<readonly LogLine[]>;
  /** Sends an update to the run. Returns the answer. @throws Error if the run refuses it or does not handle it now */
  update(name: string, payload?: unknown): Promise<unknown>;
  /** Requests the cancellation of the run. A paused run is resumed for its undo. */
  cancel(): Promise<RunView>;
  /** Pauses the run. While a body is held, it is `pausing`. */
  pause(): Promise<RunView>;
  /** Ends the pause of the run. */
  resume(): Promise<RunView>;
  /** Returns a child of the run, by the name of its step. */
  child(step: string): TestChild;
  /**
   * Retries the run as an operator does. Without `fromFailed`, the calls of this object then concern the new run.
   * @throws KonvergeError as the HTTP API
   */
  retry(options?: TestRetryOptions): Promise<RunView>;
  /**
   * Starts another run of the workflow with the key of this one, which must have a `key`. Returns the run that has it: the new one,
   * or with `attach` the one before.
   * @throws KonvergeError `run_exists`, `queue_full`
   */
  startOther(input: unknown, options?: { readonly onExisting?: OnExisting }): Promise<TestChild>;
  /**
   * Replaces the code of the run or of a child. Later executions use it, on the same records. A blocked run is rechecked after a
   * minute, as in production.
   * @throws Error for a workflow with another name
   */
  deploy(workflow: AnyWorkflow): void;
  /** Makes the next `times` attempts of the step throw `error` instead of running its body. Default 1. */
  failStep(step: string, error: Error, options?: { readonly times?: number }): void;
  /** Makes the execution crash once, right after the record of the step. */
  crashAfter(step: string): void;
  /** Makes the execution crash once, after the body of the step and before its record. */
  crashIn(step: string): void;
  /** Makes the execution crash once, at the `nth` heartbeat of the step from now. Default 1. */
  crashAtHeartbeat(step: string, nth?: number): void;
  /**
   * Holds the body of a step at its begin, so that signals, `advance` and `cancel` arrive while it is at work. Calls then resolve
   * when everything else waits.
   */
  holdStep(step: string): void;
  /** Lets a held body continue. @throws Error if the step is not held */
  releaseStep(step: string): Promise<RunView>;
  /**
   * Replays the function on the recorded steps.
   * @throws Error naming the new steps if the function is not deterministic
   */
  replay(): Promise<void>;
}
