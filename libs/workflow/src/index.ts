export type { ClusterAccess } from "./cluster-access.ts";
export type { ObjectRef } from "./object-ref.ts";
export { defineWorkflow } from "./define-workflow.ts";
export type {
  AnyWorkflow,
  Durable,
  RetryOptions,
  Schema,
  SignalOptions,
  StepContext,
  StepOptions,
  Workflow,
  WorkflowContext,
  WorkflowFunction,
  WorkflowOptions,
} from "./define-workflow.ts";
export type { Json, OnlyJson } from "./json-value.ts";
export type { RunCursor, RunFilter, RunPage } from "./list-runs.ts";
export { openWorkflows } from "./open-workflows.ts";
export type {
  RunWorkerSettings,
  SignalMessage,
  StartedRun,
  StartedWorkflow,
  StartOptions,
  Workflows,
  WorkflowsOptions,
} from "./workflows.ts";
export { defineSchedule } from "./schedules/define-schedule.ts";
export type { Schedule, ScheduleOptions } from "./schedules/define-schedule.ts";
export type { ScheduleView } from "./schedules/schedule-book.ts";
export type { Scheduler } from "./schedules/start-scheduler.ts";
export type { RetryRunOptions } from "./retry-run.ts";
export type { EndedActivation, RecordedStep, RunObserver } from "./run-observer.ts";
export { formatRunId, keyOfRun, parseRunId, queueOfWorkflow, workflowOfQueue } from "./run-ref.ts";
export type { RunRef } from "./run-ref.ts";
export type {
  CancelOrder,
  Failure,
  OnExisting,
  RetryOrder,
  RunGlance,
  RunCounts,
  RunStatus,
  RunSummary,
  RunView,
  RunWait,
  RunWarning,
  StepKind,
  StepRecord,
  UntakenSignal,
} from "./run-store.ts";
export type {
  ApplyOptions,
  DeleteOptions,
  EvictOptions,
  NamedTarget,
  ObjectIntent,
  ObjectTarget,
  Seen,
  StepVerbs,
} from "./verbs/step-verbs.ts";
export { StepFailedError } from "./step-failed-error.ts";
export type { WaitWatcher, WaitWatcherSettings } from "./waits/start-wait-watcher.ts";
export { complete, condition, field, gone, ready } from "./waits/object-conditions.ts";
export type { ReadyOptions } from "./waits/object-conditions.ts";
export { all, any } from "./waits/wait-condition.ts";
export type { AnyMet, WaitCondition } from "./waits/wait-condition.ts";
export type { WaitForOptions } from "./waits/wait-options.ts";
export type { WaitedKind } from "./waits/wait-names.ts";
export type { WaitTarget } from "./waits/wait-target.ts";
