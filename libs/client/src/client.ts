import type {
  AcceptedReconcile,
  Activity,
  Approval,
  ApprovalDecision,
  ApprovalDetail,
  ApprovalList,
  ApprovalQuery,
  DriftDetail,
  DriftList,
  DriftQuery,
  AttemptListQuery,
  AttemptPage,
  AttemptSummary,
  AuditEntry,
  AuditPage,
  AuditQuery,
  CancelResponse,
  ClusterList,
  ActOnRuns,
  ActOnRunsResponse,
  CancelRunResponse,
  PauseRunResponse,
  Contention,
  ControllerList,
  CreateReconcile,
  EventQuery,
  Explanation,
  ContentionReport,
  GuardAction,
  GuardList,
  GuardView,
  LimitList,
  NotificationList,
  NotificationQuery,
  KeyItem,
  KeyList,
  KeyListQuery,
  LiveObject,
  MutationDetail,
  MutationKindList,
  MutationList,
  MutationListQuery,
  MutationResults,
  NewMutation,
  ObjectAttempts,
  ObjectHistory,
  ObjectLog,
  ObjectPlan,
  OperatorActionList,
  Overview,
  PauseList,
  PlanList,
  PauseAction,
  QueueList,
  ReconcileResults,
  ReconcileState,
  ReleaseResponse,
  ReleaseAction,
  ResumeResponse,
  RaiseRun,
  RetryRun,
  Rollups,
  RunDetail,
  RunHistoryItem,
  RunHistoryList,
  RunHistoryQuery,
  RunList,
  RunListQuery,
  BackfillResponse,
  BackfillSchedule,
  ScheduleDetail,
  RunLog,
  RunUpdate,
  ScheduleList,
  TriggerSchedule,
  SignalRun,
  StartRunResponse,
  StartRun,
  UpdateRun,
  Whoami,
  WorkerList,
} from "@konverge/contracts";
import type { AttemptRecord, AttemptRecording } from "@konverge/records";
import type { ClientEvent } from "./event-stream.ts";
import type { Pages } from "./pages.ts";

/** Makes fields with a default optional. */
type Defaulted<Body, Names extends keyof Body> = Omit<Body, Names> & Partial<Pick<Body, Names>>;

export type NewReconcile = Defaulted<CreateReconcile, "cluster">;
export type KeyQuery = Partial<KeyListQuery>;
export type AttemptQuery = Partial<AttemptListQuery>;
export type MutationQuery = Partial<MutationListQuery>;
export type Pause = Defaulted<PauseAction, "cluster">;
export type NewRun = Defaulted<StartRun, "cluster" | "onExisting">;
export type BulkRunAction = Defaulted<
  ActOnRuns,
  "cluster" | "filter" | "all" | "dryRun" | "fromFailed"
>;
export type RunQuery = Partial<RunListQuery>;
export type HistoriesQuery = Pick<RunHistoryQuery, "workflow"> & Partial<RunHistoryQuery>;
export type RunRetry = Defaulted<RetryRun, "fromFailed">;
export type Backfill = Defaulted<BackfillSchedule, "overlap" | "dryRun">;
export type Run = RunList["items"][number];
export type Release = Defaulted<ReleaseAction, "cluster" | "dryRun">;

/** Author and reason of an action, both stored. */
export type OperatorAction = GuardAction;

/** An object of a controller. */
export interface ControllerObject {
  /** Default: `default`. */
  readonly cluster?: string | undefined;
  readonly controller: string;
  /** Omitted for cluster-scoped objects. */
  readonly namespace?: string | undefined;
  readonly name: string;
}

export type Controller = ControllerList["items"][number];
export type Worker = WorkerList["items"][number];
/** A cluster that workers serve. */
export type Cluster = ClusterList["items"][number];

/** Default: the cluster of the API process. */
export interface ClusterQuery {
  readonly cluster?: string | undefined;
}

export interface ScheduleName extends ClusterQuery {
  readonly name: string;
}

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface WriteOptions extends ReadOptions {
  /** Repeating key and body within a day returns the first response. Default: a random key per call. */
  readonly idempotencyKey?: string | undefined;
}

export interface WaitOptions extends ReadOptions {
  /** Longest time to wait, in ms. Default 60,000. */
  readonly timeoutMs?: number | undefined;
}

export interface PlanOptions extends WriteOptions, WaitOptions {
  /** `background`, for plans of many objects: after all other calls, and kept for 10 minutes. Default `interactive`. */
  readonly class?: "interactive" | "background" | undefined;
}

/** All methods reject with `ProblemError`, or with the reason of `signal`. */
export interface Client {
  readonly reconciles: {
    create(body: NewReconcile, options?: WriteOptions): Promise<AcceptedReconcile>;
    /** Requests up to 1,000 objects, with one result each, in order. */
    createMany(bodies: readonly NewReconcile[], options?: WriteOptions): Promise<ReconcileResults>;
    get(id: string, options?: ReadOptions): Promise<ReconcileState>;
    /** Waits until the request ends, with any outcome. @throws ProblemError `wait_timeout` */
    wait(id: string, options?: WaitOptions): Promise<ReconcileState>;
    /** Lists active requests by key. */
    list(query?: KeyQuery, options?: ReadOptions): Pages<KeyItem, KeyList>;
    cancel(id: string, action: OperatorAction, options?: WriteOptions): Promise<CancelResponse>;
  };
  /** Changes of objects, made exactly once. IDs are `<cluster>/<id>`. */
  readonly mutations: {
    /** Stores the mutation and returns it, usually while it waits. */
    submit(mutation: NewMutation, options?: WriteOptions): Promise<MutationDetail>;
    /** Stores up to 1,000 mutations, with one result each, in order. */
    submitAll(mutations: readonly NewMutation[], options?: WriteOptions): Promise<MutationResults>;
    get(id: string, options?: ReadOptions): Promise<MutationDetail>;
    /** Waits until the mutation has ended, with any outcome. @throws ProblemError `wait_timeout` */
    wait(id: string, options?: WaitOptions): Promise<MutationDetail>;
    /** Lists mutations, newest first. */
    list(query?: MutationQuery, options?: ReadOptions): Pages<MutationDetail, MutationList>;
    /** Cancels a waiting mutation. @throws ProblemError `mutation_not_waiting` */
    cancel(id: string, options?: WriteOptions): Promise<MutationDetail>;
    /** Lists the kinds that mutations may change. */
    kinds(query?: ClusterQuery, options?: ReadOptions): Promise<MutationKindList>;
  };
  readonly objects: {
    /** Lists keys with their phases. */
    list(query?: KeyQuery, options?: ReadOptions): Pages<KeyItem, KeyList>;
    /** Returns the state of the object and its latest attempts. */
    get(object: ControllerObject, options?: ReadOptions): Promise<ObjectHistory>;
    /** Returns the latest attempts, newest first. */
    attempts(object: ControllerObject, options?: ReadOptions): Promise<ObjectAttempts>;
    /** Returns an attempt by its number. */
    attempt(object: ControllerObject, epoch: number, options?: ReadOptions): Promise<AttemptRecord>;
    /**
     * Returns everything that a recorded attempt has read and written.
     * @param epoch the number of the attempt; default: the last recorded one
     */
    recording(
      object: ControllerObject,
      epoch?: number,
      options?: ReadOptions,
    ): Promise<AttemptRecording>;
    /** Returns the kept log lines of all attempts, or of one, oldest first. */
    logs(
      object: ControllerObject,
      query?: { readonly attempt?: number },
      options?: ReadOptions,
    ): Promise<ObjectLog>;
    /** Returns the current object from the cluster, read by a worker, with events, owners and children. */
    live(object: ControllerObject, options?: ReadOptions): Promise<LiveObject>;
    /** Returns the contention over the object. */
    contention(object: ControllerObject, options?: ReadOptions): Promise<Contention>;
    /** Explains why the object is not reconciled or not ready. */
    explain(object: ControllerObject, options?: ReadOptions): Promise<Explanation>;
    /** Plans the next attempt of the object in a worker, and waits for the end of the plan. */
    plan(object: ControllerObject, options?: PlanOptions): Promise<ObjectPlan>;
    /** Returns the kept plans of the object, newest first. */
    plans(object: ControllerObject, options?: ReadOptions): Promise<PlanList>;
    reconcile(
      object: ControllerObject,
      body?: { readonly reason?: string },
      options?: WriteOptions,
    ): Promise<AcceptedReconcile>;
    pause(
      object: ControllerObject,
      action: OperatorAction,
      options?: WriteOptions,
    ): Promise<PauseList>;
    resume(
      object: ControllerObject,
      action: OperatorAction,
      options?: WriteOptions,
    ): Promise<ResumeResponse>;
  };
  /** Plans that users must approve before an attempt makes their changes. */
  readonly approvals: {
    /** Lists the plans of a cluster, oldest first. */
    list(query?: Partial<ApprovalQuery>, options?: ReadOptions): Promise<ApprovalList>;
    /** Returns the plan that waits, with its changes. @throws ProblemError `not_found` */
    get(object: ControllerObject, options?: ReadOptions): Promise<ApprovalDetail>;
    /** Approves exactly the plan with this hash. @throws ProblemError `approval_stale`, `forbidden` */
    approve(
      object: ControllerObject,
      decision: ApprovalDecision,
      options?: WriteOptions,
    ): Promise<Approval>;
    reject(
      object: ControllerObject,
      decision: ApprovalDecision,
      options?: WriteOptions,
    ): Promise<Approval>;
  };
  /** Changes that controllers with the mode `observe` would make. */
  readonly drift: {
    /** Lists groups of equal changes, and the objects. */
    list(query?: Partial<DriftQuery>, options?: ReadOptions): Promise<DriftList>;
    /** Returns the changes of an object, with its plan. @throws ProblemError `not_found` */
    get(object: ControllerObject, options?: ReadOptions): Promise<DriftDetail>;
  };
  /** Workflow runs. IDs are `<workflow>/<cluster>/<id>`. */
  readonly runs: {
    start(body: NewRun, options?: WriteOptions): Promise<StartRunResponse>;
    /** Lists runs, newest first. */
    list(query?: RunQuery, options?: ReadOptions): Pages<Run, RunList>;
    /** Returns the state of the run and its steps. */
    get(id: string, options?: ReadOptions): Promise<RunDetail>;
    /** Returns the last log lines of the run, oldest first. */
    logs(id: string, options?: ReadOptions): Promise<RunLog>;
    /** Waits until the run is done, failed or cancelled. @throws ProblemError `wait_timeout` */
    wait(id: string, options?: WaitOptions): Promise<RunDetail>;
    /** Yields the run now and after each change of its status or steps, until it ends. @throws as `wait` */
    watch(id: string, options?: WaitOptions): AsyncIterable<RunDetail>;
    signal(id: string, signal: SignalRun, options?: WriteOptions): Promise<RunDetail>;
    /**
     * Sends an update and waits for its answer, by default 60 s. Repeat it with the same `id` to wait longer.
     * @throws ProblemError `invalid_request` if the run refuses it, `run_ended`, `wait_timeout`
     */
    update(id: string, update: UpdateRun, options?: WaitOptions): Promise<RunUpdate>;
    /** Cancels the run and undoes its steps. `effect` and `note` show whether the request has an effect. */
    cancel(id: string, action: OperatorAction, options?: WriteOptions): Promise<CancelRunResponse>;
    /** Raises the limits of the run's records. A blocked run continues. */
    raise(id: string, action: RaiseRun, options?: WriteOptions): Promise<RunDetail>;
    /** Pauses the run. While a worker still executes it, `effect` is `pausing`. */
    pause(id: string, action: OperatorAction, options?: WriteOptions): Promise<PauseRunResponse>;
    /** Ends the pause of the run, which continues at once. */
    resume(id: string, action: OperatorAction, options?: WriteOptions): Promise<PauseRunResponse>;
    /** Acts on all runs that match. While the response has a `next`, repeat the call with it as the `cursor`. */
    act(action: BulkRunAction, options?: WriteOptions): Promise<ActOnRunsResponse>;
    /** Ends the run at once, without compensation. `undosLeft` of the run lists the recorded steps that were not undone. */
    terminate(id: string, action: OperatorAction, options?: WriteOptions): Promise<RunDetail>;
    /**
     * Retries a failed or cancelled run as a new run, which is returned. With `fromFailed`, the same run resumes after its
     * completed steps. A blocked run is rechecked.
     */
    retry(id: string, action: RunRetry, options?: WriteOptions): Promise<RunDetail>;
    /** Returns the input and all records of the run, for a replay with other code. */
    history(id: string, options?: ReadOptions): Promise<RunHistoryItem>;
    /** Lists the histories of the runs of a workflow, newest first. */
    histories(query: HistoriesQuery, options?: ReadOptions): Pages<RunHistoryItem, RunHistoryList>;
  };
  /** Schedules of the workers. Cluster: `default` if omitted. */
  readonly schedules: {
    list(query?: ClusterQuery, options?: ReadOptions): Promise<ScheduleList>;
    get(schedule: ScheduleName, options?: ReadOptions): Promise<ScheduleDetail>;
    /** Starts no runs until the schedule is resumed. The times in between are skipped. */
    pause(
      schedule: ScheduleName,
      action: OperatorAction,
      options?: WriteOptions,
    ): Promise<ScheduleDetail>;
    resume(
      schedule: ScheduleName,
      action: OperatorAction,
      options?: WriteOptions,
    ): Promise<ScheduleDetail>;
    /** Starts a run now, also while the schedule is paused. */
    trigger(
      schedule: ScheduleName,
      action: TriggerSchedule,
      options?: WriteOptions,
    ): Promise<StartRunResponse>;
    /** Starts the runs of the past times in a range that have none, one after another. */
    backfill(
      schedule: ScheduleName,
      action: Backfill,
      options?: WriteOptions,
    ): Promise<BackfillResponse>;
  };
  readonly attempts: {
    list(query?: AttemptQuery, options?: ReadOptions): Pages<AttemptSummary, AttemptPage>;
  };
  readonly controllers: {
    list(query?: ClusterQuery, options?: ReadOptions): Promise<ControllerList>;
    /** Returns the counts of a controller per minute. */
    rollups(
      query: { readonly controller: string; readonly cluster?: string; readonly minutes?: number },
      options?: ReadOptions,
    ): Promise<Rollups>;
    /** Returns attempts, durations, queue and calls per minute, of one controller or of all together. */
    activity(
      query?: ClusterQuery & { readonly controller?: string; readonly minutes?: number },
      options?: ReadOptions,
    ): Promise<Activity>;
    /** Lists operator actions, newest first. */
    actions(
      query: { readonly controller: string; readonly cluster?: string },
      options?: ReadOptions,
    ): Promise<OperatorActionList>;
  };
  readonly queues: {
    /** Lists queue lengths by controller and workflow. */
    list(query?: ClusterQuery, options?: ReadOptions): Promise<QueueList>;
    pauses(query?: ClusterQuery, options?: ReadOptions): Promise<PauseList>;
    pause(action: Pause, options?: WriteOptions): Promise<PauseList>;
    resume(action: Pause, options?: WriteOptions): Promise<ResumeResponse>;
  };
  /** The clusters that workers serve. */
  readonly clusters: {
    list(options?: ReadOptions): Promise<ClusterList>;
  };
  readonly workers: {
    list(query?: ClusterQuery, options?: ReadOptions): Promise<WorkerList>;
  };
  readonly guards: {
    /** `minutes`: adds the calls of so many minutes. */
    list(query?: { readonly minutes?: number }, options?: ReadOptions): Promise<GuardList>;
    get(cluster: string, options?: ReadOptions): Promise<GuardView>;
    /** Stops all calls to the API server until `reset`. */
    isolate(cluster: string, action: OperatorAction, options?: WriteOptions): Promise<GuardView>;
    reset(cluster: string, action: OperatorAction, options?: WriteOptions): Promise<GuardView>;
    /** Overrides the calls per second of all workers; null removes the override. */
    setRate(
      cluster: string,
      action: OperatorAction & { readonly ratePerSecond: number | null },
      options?: WriteOptions,
    ): Promise<GuardView>;
  };
  readonly notifications: {
    /** Lists notifications about faults with their deliveries, newest first. */
    list(query?: NotificationQuery, options?: ReadOptions): Promise<NotificationList>;
  };
  readonly limits: {
    /** Lists the named limits of external services with their use. */
    list(options?: ReadOptions): Promise<LimitList>;
  };
  readonly deadLetters: {
    list(query?: Omit<KeyQuery, "phase">, options?: ReadOptions): Pages<KeyItem, KeyList>;
    /** Releases keys; with `dryRun`, only counts them. */
    release(action: Release, options?: WriteOptions): Promise<ReleaseResponse>;
  };
  readonly contention: {
    list(
      query?: { readonly cluster?: string; readonly hours?: number },
      options?: ReadOptions,
    ): Promise<ContentionReport>;
  };
  readonly audit: {
    /** Lists changes, newest first. */
    list(query?: Partial<AuditQuery>, options?: ReadOptions): Pages<AuditEntry, AuditPage>;
  };
  /** Returns the current problems of a cluster, and the state of its controllers and workflows. */
  overview(query?: ClusterQuery, options?: ReadOptions): Promise<Overview>;
  /** Returns the caller and its permissions. */
  whoami(options?: ReadOptions): Promise<Whoami>;
  /** Follows events until `break`, `signal`, or a permanent problem. */
  events(
    query?: Partial<EventQuery>,
    options?: ReadOptions & { readonly lastEventId?: string },
  ): AsyncIterable<ClientEvent>;
}
