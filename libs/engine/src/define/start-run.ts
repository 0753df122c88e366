import type { ApiObject, ObjectKey, RunLabels, RunStatus } from "@konverge/core";

/** The part of a workflow that starts a run; every workflow of `defineWorkflow` has it. */
export interface StartedWorkflow<I, R = unknown> {
  readonly name: string;
  readonly version: number;
  /** Checks the input before the run starts. Without it, the worker that executes the run is the first to check. */
  readonly input?: { parse(value: unknown): I };
  /** The workflow's function, for the type of its result. */
  readonly run?: (...args: never[]) => Promise<R>;
}

/** The options of `startRun`. */
export interface StartRunOptions {
  /**
   * Identifies the run; a second start with the same id returns the existing run. Default: derived from the object's name, uid
   * and generation (from the input for kinds without a generation), so that all attempts for one generation start one run.
   */
  readonly id?: string;
  /** At most one active run per key. Default: the object. */
  readonly key?: string;
  /** Runs are found by them; at most 10. Default: none. */
  readonly labels?: RunLabels;
  /** If another run holds the key: return that run (default), fail, or cancel it and start after it has ended. */
  readonly onExisting?: "attach" | "reject" | "supersede" | "queue";
  /** `reconcile`: reconciles the object again when the run has ended. Default: nothing. */
  readonly onEnd?: "reconcile";
}

/** The state of a run, which may have existed before the call. */
export interface RunState<R = unknown> {
  /** `<workflow>/<cluster>/<id>`. */
  readonly id: string;
  /** False for a run that existed before the call. */
  readonly created: boolean;
  /** The status at the time of the call. */
  readonly status: RunStatus;
  /** The result of a run that is `done`. Missing after the retention if it was larger than 4 KiB. */
  readonly result?: R;
  /** The error of a run that has failed or was cancelled. */
  readonly error?: { readonly code: string; readonly message: string };
  /** Reason why the run is blocked, with a suggested fix. */
  readonly blockedReason?: string;
}

/** @throws KonvergeError `run_exists`, `invalid_request`, `redis_unavailable` */
export type StartRun = <I, R = unknown>(
  workflow: StartedWorkflow<I, R>,
  input: NoInfer<I>,
  options?: StartRunOptions,
) => Promise<RunState<R>>;

/** A start of a run, as a handler requested it for its object. */
export interface RunRequest<I> {
  readonly workflow: StartedWorkflow<I>;
  readonly input: I;
  readonly options: StartRunOptions;
  /** The reconciled key and its object. */
  readonly key: ObjectKey;
  readonly object: ApiObject;
}

/** Starts workflow runs for handlers. The worker provides it; the engine has no workflows of its own. */
export interface RunStarter {
  startFor<I>(request: RunRequest<I>): Promise<RunState>;
}
