export {
  approvalDecisionSchema,
  approvalDetailSchema,
  approvalListSchema,
  approvalQuerySchema,
  approvalSchema,
} from "./approval-api.ts";
export type {
  Approval,
  ApprovalDecision,
  ApprovalDetail,
  ApprovalList,
  ApprovalQuery,
} from "./approval-api.ts";
export { driftDetailSchema, driftListSchema, driftQuerySchema, driftSchema } from "./drift-api.ts";
export type { Drift, DriftDetail, DriftList, DriftQuery } from "./drift-api.ts";
export { activityQuerySchema, activitySchema } from "./activity-api.ts";
export type { Activity, ActivityMinute } from "./activity-api.ts";
export { auditEntrySchema, auditPageSchema, auditQuerySchema } from "./audit-api.ts";
export type { AuditEntry, AuditPage, AuditQuery } from "./audit-api.ts";
export { eventQuerySchema, streamEventSchema } from "./event-api.ts";
export type { EventQuery, StreamEvent } from "./event-api.ts";
export { duration } from "./duration.ts";
export {
  attemptPageSchema,
  attemptQuerySchema,
  contentionSchema,
  contentionQuerySchema,
  contentionReportSchema,
  objectAttemptsSchema,
  objectHistorySchema,
  objectLogQuerySchema,
  objectLogSchema,
  rollupsQuerySchema,
  rollupsSchema,
} from "./history-api.ts";
export type {
  AttemptListQuery,
  AttemptPage,
  AttemptSummary,
  Contention,
  ContentionEpisode,
  ContentionReport,
  ObjectAttempts,
  ObjectHistory,
  ObjectLog,
  Rollups,
} from "./history-api.ts";
export { objectPlanSchema, planListSchema, planQuerySchema } from "./plan-api.ts";
export type { ObjectPlan, PlanList } from "./plan-api.ts";
export { EXPLANATION_CAUSES, explanationSchema } from "./explanation-api.ts";
export type { Explanation, ExplanationCause } from "./explanation-api.ts";
export { liveObjectSchema } from "./live-object-api.ts";
export type { LiveObject } from "./live-object-api.ts";
export {
  mutationKindListSchema,
  mutationListSchema,
  mutationQuerySchema,
  mutationResultsSchema,
  mutationSchema,
  submitMutationSchema,
  submitMutationsSchema,
} from "./mutation-api.ts";
export type {
  MutationDetail,
  MutationKindList,
  MutationList,
  MutationListQuery,
  MutationResults,
  NewMutation,
  SubmitMutation,
} from "./mutation-api.ts";
export { inboundQuerySchema, inboundResultSchema, sourceListSchema } from "./source-api.ts";
export type { InboundResult, SourceList, SourceView } from "./source-api.ts";
export { OVERVIEW_PROBLEMS, overviewQuerySchema, overviewSchema } from "./overview-api.ts";
export type {
  Overview,
  OverviewController,
  OverviewProblem,
  OverviewWorkflow,
} from "./overview-api.ts";
export {
  actOnRunsResponseSchema,
  actOnRunsSchema,
  cancelRunResponseSchema,
  pauseRunResponseSchema,
  raiseRunSchema,
  retryRunSchema,
  runUpdateSchema,
  signalRunSchema,
  updateRunSchema,
} from "./run-action-api.ts";
export type {
  ActOnRuns,
  ActOnRunsResponse,
  CancelRunResponse,
  PauseRunResponse,
  RaiseRun,
  RetryRun,
  RunUpdate,
  SignalRun,
  UpdateRun,
} from "./run-action-api.ts";
export {
  runListSchema,
  runLogSchema,
  runQuerySchema,
  runSchema,
  runWaitQuerySchema,
  startRunResponseSchema,
  startRunSchema,
} from "./run-api.ts";
export type {
  RunDetail,
  RunFilterQuery,
  RunList,
  RunListQuery,
  RunLog,
  StartRun,
  StartRunResponse,
} from "./run-api.ts";
export { parseLabels } from "./run-fields.ts";
export {
  runHistoryListSchema,
  runHistoryQuerySchema,
  runHistorySchema,
} from "./run-history-api.ts";
export type { RunHistoryItem, RunHistoryList, RunHistoryQuery } from "./run-history-api.ts";
export {
  backfillResponseSchema,
  backfillScheduleSchema,
  scheduleListSchema,
  scheduleQuerySchema,
  scheduleSchema,
  triggerScheduleSchema,
} from "./schedule-api.ts";
export type {
  BackfillResponse,
  BackfillSchedule,
  ScheduleDetail,
  ScheduleList,
  TriggerSchedule,
} from "./schedule-api.ts";
export { clusterListSchema } from "./cluster-api.ts";
export type { ClusterList } from "./cluster-api.ts";
export {
  clusterOf,
  describeSettings,
  findSettingsIssues,
  readSettings,
  settingsSchema,
} from "./settings.ts";
export type { SettingDoc, Settings, SettingsInput } from "./settings.ts";
export {
  cancelResponseSchema,
  clusterQuerySchema,
  controllerListSchema,
  deadLetterQuerySchema,
  keyListSchema,
  keyQuerySchema,
  operatorActionListSchema,
  operatorActionSchema,
  operatorActionsQuerySchema,
  pauseListSchema,
  pauseActionSchema,
  pauseSchema,
  pausesQuerySchema,
  queueListSchema,
  releaseResponseSchema,
  releaseActionSchema,
  resumeResponseSchema,
  workerListSchema,
} from "./queue-api.ts";
export type {
  CancelResponse,
  ControllerList,
  KeyItem,
  KeyList,
  KeyListQuery,
  OperatorActionList,
  PauseList,
  PauseAction,
  PauseView,
  QueueList,
  ReleaseResponse,
  ReleaseAction,
  ResumeResponse,
  WorkerList,
} from "./queue-api.ts";
export {
  guardActionSchema,
  guardListQuerySchema,
  guardListSchema,
  guardRateSchema,
  guardViewSchema,
} from "./guard-api.ts";
export type { GuardAction, GuardList, GuardView } from "./guard-api.ts";
export { limitListSchema } from "./limit-api.ts";
export { notificationListSchema, notificationQuerySchema } from "./notification-api.ts";
export type { NotificationList, NotificationQuery, NotificationView } from "./notification-api.ts";
export type { LimitList, LimitView } from "./limit-api.ts";
export { problemSchema } from "./problem.ts";
export type { Problem } from "./problem.ts";
export {
  acceptedReconcileSchema,
  createReconcilesSchema,
  createReconcileSchema,
  reconcileNowSchema,
  reconcileResultsSchema,
  reconcileStateSchema,
  REQUEST_CLASSES,
  waitQuerySchema,
} from "./reconcile-api.ts";
export type {
  AcceptedReconcile,
  CreateReconcile,
  ReconcileResults,
  ReconcileState,
  RequestedClass,
} from "./reconcile-api.ts";
export { CALLBACK_PATH } from "./group-roles.ts";
export type { GroupRole } from "./group-roles.ts";
export { readSignInSettings } from "./sign-in-settings.ts";
export type { SignInSettings } from "./sign-in-settings.ts";
export {
  newTokenSchema,
  ROLES,
  scopeSchema,
  sessionSchema,
  tokenViewSchema,
  whoamiSchema,
} from "./token-api.ts";
export type { NewToken, Role, Scope, TokenView, Whoami } from "./token-api.ts";
