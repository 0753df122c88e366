import type {
  AcceptedReconcile,
  AttemptListQuery,
  AttemptPage,
  AttemptSummary,
  AuditEntry,
  AuditPage,
  AuditQuery,
  CancelResponse,
  Contention,
  ControllerList,
  CreateReconcile,
  EventQuery,
  ContentionReport,
  GuardAction,
  GuardList,
  GuardView,
  KeyItem,
  KeyList,
  KeyListQuery,
  ObjectAttempts,
  ObjectHistory,
  OperatorActionList,
  PauseList,
  PauseAction,
  QueueList,
  ReconcileResults,
  ReconcileState,
  ReleaseResponse,
  ReleaseAction,
  ResumeResponse,
  RetryRun,
  Rollups,
  RunDetail,
  RunList,
  RunListQuery,
  ScheduleList,
  SignalRun,
  StartRunResponse,
  StartRun,
  Whoami,
  WorkerList,
} from "@konverge/contracts";
import type { AttemptRecord } from "@konverge/records";
import type { ClientEvent } from "./event-stream.ts";
import type { Pages } from "./pages.ts";

/** What has a default on the server may be left out. */
type Defaulted<Body, Names extends keyof Body> = Omit<Body, Names> & Partial<Pick<Body, Names>>;

export type NewReconcile = Defaulted<CreateReconcile, "cluster">;
export type KeyQuery = Partial<KeyListQuery>;
export type AttemptQuery = Partial<AttemptListQuery>;
export type Pause = Defaulted<PauseAction, "cluster">;
export type NewRun = Defaulted<StartRun, "cluster" | "onExisting">;
export type RunQuery = Partial<RunListQuery>;
export type RunRetry = Defaulted<RetryRun, "fromFailed">;
export type Run = RunList["items"][number];
export type Release = Defaulted<ReleaseAction, "cluster" | "dryRun">;

/** Who gives an order and why; both are kept. */
export type OperatorAction = GuardAction;

/** An object of a controller. */
export interface ControllerObject {
  /** Default: `default`. */
  readonly cluster?: string | undefined;
  readonly controller: string;
  /** Left out for cluster-scoped objects. */
  readonly namespace?: string | undefined;
  readonly name: string;
}

export type Controller = ControllerList["items"][number];
export type Worker = WorkerList["items"][number];

/** Left out: the cluster of the API's own configuration. */
export interface ClusterQuery {
  readonly cluster?: string | undefined;
}

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface WriteOptions extends ReadOptions {
  /** Sent again with the same body within a day, the first answer is given again. Default: a random one per call. */
  readonly idempotencyKey?: string | undefined;
}

export interface WaitOptions extends ReadOptions {
  /** How long altogether, in ms. Default 60,000. */
  readonly timeoutMs?: number | undefined;
}

/** Everything rejects with `ProblemError`, or with what `signal` was aborted with. */
export interface Client {
  readonly reconciles: {
    create(body: NewReconcile, options?: WriteOptions): Promise<AcceptedReconcile>;
    /** Up to 1,000, with a result each, in order. */
    createMany(bodies: readonly NewReconcile[], options?: WriteOptions): Promise<ReconcileResults>;
    get(id: string, options?: ReadOptions): Promise<ReconcileState>;
    /** Until it is finished, whatever its outcome. @throws ProblemError `wait_timeout` */
    wait(id: string, options?: WaitOptions): Promise<ReconcileState>;
    /** What is requested and has not ended, by key. */
    list(query?: KeyQuery, options?: ReadOptions): Pages<KeyItem, KeyList>;
    cancel(id: string, action: OperatorAction, options?: WriteOptions): Promise<CancelResponse>;
  };
  readonly objects: {
    /** By key: who waits, backs off, is dead or paused. */
    list(query?: KeyQuery, options?: ReadOptions): Pages<KeyItem, KeyList>;
    /** How it stands, with its latest attempts. */
    get(object: ControllerObject, options?: ReadOptions): Promise<ObjectHistory>;
    /** The latest, newest first. */
    attempts(object: ControllerObject, options?: ReadOptions): Promise<ObjectAttempts>;
    /** One of them, by its number. */
    attempt(object: ControllerObject, epoch: number, options?: ReadOptions): Promise<AttemptRecord>;
    /** Who fights over it. */
    contention(object: ControllerObject, options?: ReadOptions): Promise<Contention>;
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
  /** Of workflows. Ids are `<workflow>/<cluster>/<id>`. */
  readonly runs: {
    start(body: NewRun, options?: WriteOptions): Promise<StartRunResponse>;
    /** Newest first. */
    list(query?: RunQuery, options?: ReadOptions): Pages<Run, RunList>;
    /** How it stands, with its steps. */
    get(id: string, options?: ReadOptions): Promise<RunDetail>;
    /** Until it is done, failed or cancelled. @throws ProblemError `wait_timeout` */
    wait(id: string, options?: WaitOptions): Promise<RunDetail>;
    /** How it stands now, and again whenever its status or its steps have changed, until it has ended. @throws as `wait` */
    watch(id: string, options?: WaitOptions): AsyncIterable<RunDetail>;
    signal(id: string, signal: SignalRun, options?: WriteOptions): Promise<RunDetail>;
    cancel(id: string, action: OperatorAction, options?: WriteOptions): Promise<RunDetail>;
    /**
     * Begins one that failed or was cancelled anew, and answers the new run; with `fromFailed` the same run goes on behind
     * what succeeded. A stuck one is looked at at once.
     */
    retry(id: string, action: RunRetry, options?: WriteOptions): Promise<RunDetail>;
    /** What starts runs by the clock. */
    schedules(query?: ClusterQuery, options?: ReadOptions): Promise<ScheduleList>;
  };
  readonly attempts: {
    list(query?: AttemptQuery, options?: ReadOptions): Pages<AttemptSummary, AttemptPage>;
  };
  readonly controllers: {
    list(query?: ClusterQuery, options?: ReadOptions): Promise<ControllerList>;
    /** What it did per minute. */
    rollups(
      query: { readonly controller: string; readonly cluster?: string; readonly minutes?: number },
      options?: ReadOptions,
    ): Promise<Rollups>;
    /** What people ordered, newest first. */
    actions(
      query: { readonly controller: string; readonly cluster?: string },
      options?: ReadOptions,
    ): Promise<OperatorActionList>;
  };
  readonly queues: {
    /** How much of each controller waits. */
    list(query?: ClusterQuery, options?: ReadOptions): Promise<QueueList>;
    pauses(query?: ClusterQuery, options?: ReadOptions): Promise<PauseList>;
    pause(action: Pause, options?: WriteOptions): Promise<PauseList>;
    resume(action: Pause, options?: WriteOptions): Promise<ResumeResponse>;
  };
  readonly workers: {
    list(query?: ClusterQuery, options?: ReadOptions): Promise<WorkerList>;
  };
  readonly guards: {
    list(options?: ReadOptions): Promise<GuardList>;
    get(cluster: string, options?: ReadOptions): Promise<GuardView>;
    /** Nothing is sent to the API server any more, until `reset`. */
    isolate(cluster: string, action: OperatorAction, options?: WriteOptions): Promise<GuardView>;
    reset(cluster: string, action: OperatorAction, options?: WriteOptions): Promise<GuardView>;
    /** Calls per second of the whole fleet; null: the configured ones. */
    setRate(
      cluster: string,
      action: OperatorAction & { readonly ratePerSecond: number | null },
      options?: WriteOptions,
    ): Promise<GuardView>;
  };
  readonly deadLetters: {
    list(query?: Omit<KeyQuery, "phase">, options?: ReadOptions): Pages<KeyItem, KeyList>;
    /** With `dryRun` only says how many there are. */
    release(action: Release, options?: WriteOptions): Promise<ReleaseResponse>;
  };
  readonly contention: {
    list(
      query?: { readonly cluster?: string; readonly hours?: number },
      options?: ReadOptions,
    ): Promise<ContentionReport>;
  };
  readonly audit: {
    /** Who changed what, newest first. */
    list(query?: Partial<AuditQuery>, options?: ReadOptions): Pages<AuditEntry, AuditPage>;
  };
  /** Whose token this is, and what it may do. */
  whoami(options?: ReadOptions): Promise<Whoami>;
  /** What happens, as it happens. Ends by `break`, by `signal`, or with a problem that trying again cannot cure. */
  events(
    query?: Partial<EventQuery>,
    options?: ReadOptions & { readonly lastEventId?: string },
  ): AsyncIterable<ClientEvent>;
}
