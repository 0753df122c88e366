export type { RunLimits } from "@konverge/core";
export type { ClusterAccess } from "./define/cluster-access.ts";
export { aesGcmCodec } from "./codec/aes-gcm-codec.ts";
export type { AesGcmCodecOptions } from "./codec/aes-gcm-codec.ts";
export { decodeValue, encodeValue } from "./codec/value-codec.ts";
export { externalCodec } from "./codec/external-codec.ts";
export type { ExternalCodecOptions, ExternalStore } from "./codec/external-codec.ts";
export type { ObjectRef } from "@konverge/kube";
export { countForeignMarks, readInstallation } from "./verbs/count-foreign-marks.ts";
export type { ForeignMarks, ForeignMarksOptions } from "./verbs/count-foreign-marks.ts";
export { defineWorkflow } from "./define/define-workflow.ts";
export type {
  AnyWorkflow,
  ChildOptions,
  ParentClosePolicy,
  Durable,
  MapOptions,
  RaceOptions,
  RaceOutcome,
  RetryOptions,
  Schema,
  SignalOptions,
  StartRunOptions,
  StepContext,
  StepOptions,
  Workflow,
  WorkflowContext,
  WorkflowFunction,
  WorkflowOptions,
} from "./define/define-workflow.ts";
export type { RunConcurrency } from "./define/run-concurrency.ts";
export type { RunRetention } from "./define/run-retention.ts";
export type { Json, JsonSerializable } from "./define/json-value.ts";
export type { RunCursor, RunPage } from "./store/list-runs.ts";
export type { RunFilter } from "./store/run-queries.ts";
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
export type { SchedulePause, ScheduleSpec, ScheduleView } from "./schedules/schedule-view.ts";
export type { ScheduleRule } from "./schedules/schedule-times.ts";
export type {
  BackfilledTime,
  BackfillOptions,
  ScheduleDetail,
  Schedules,
  TriggeredRun,
  TriggerOptions,
} from "./schedules/schedules.ts";
export type { Scheduler } from "./schedules/start-scheduler.ts";
export type { RetryRunOptions } from "./store/retry-run.ts";
export type { EndedExecution, RecordedStep, RunObserver } from "./journal/run-observer.ts";
export type { RunTracing } from "./journal/run-tracing.ts";
export {
  formatRunId,
  keyOfRun,
  parseRunId,
  queueOfWorkflow,
  runOfKey,
  workflowOfQueue,
} from "./define/run-ref.ts";
export type { RunRef } from "./define/run-ref.ts";
export type {
  CancelRequest,
  FailedTry,
  Failure,
  RefusedSignal,
  RefusedSignals,
  RetryRequest,
  LogLine,
  RunOverview,
  RunPause,
  RunStatus,
  RunSummary,
  RunView,
  RunWait,
  RunWarning,
  StepKind,
  StepRecord,
  UnconsumedSignal,
} from "./store/run-record.ts";
export type { OnExisting } from "./define/on-existing.ts";
export { BULK_ACTIONS } from "./bulk-actions.ts";
export type {
  BulkAction,
  BulkFailure,
  BulkRequest,
  BulkResult,
  CountRequest,
  CountResult,
} from "./bulk-actions.ts";
export type { CancelEffect } from "./cancel-effect.ts";
export type { PauseEffect } from "./pause-effect.ts";
export { undosLeft } from "./store/undos-left.ts";
export type { JournalView, NamedRecord, RunHistory } from "./store/run-history.ts";
export { replayHistory } from "./execution/replay-history.ts";
export type { ReplayResult } from "./execution/replay-history.ts";
export type { RunCounts } from "./store/run-queries.ts";
export type { NamedTarget, ObjectManifest, ObjectTarget, ReadonlyObject } from "@konverge/kube";
export type { StepVerbs } from "./define/step-verbs.ts";
export { TerminalError } from "@konverge/core";
export { StepFailedError } from "./execution/step-failed-error.ts";
export type { WaitWatcher, WaitWatcherSettings } from "./waits/start-wait-watcher.ts";
export { complete, condition, field, gone, ready } from "./define/object-conditions.ts";
export type { ReadyOptions } from "./define/object-conditions.ts";
export { all, any } from "./define/wait-condition.ts";
export type { AnyResult, WaitCondition } from "./define/wait-condition.ts";
export type { WaitForOptions } from "./define/wait-options.ts";
export type { WaitedKind } from "./store/wait-names.ts";
export type { WaitTarget } from "./define/wait-target.ts";
