export { AUDIT_ACTIONS, auditEntrySchema, auditPageSchema, auditQuerySchema } from "./audit-api.ts";
export type { AuditEntry, AuditPage, AuditQuery } from "./audit-api.ts";
export { eventQuerySchema, streamEventSchema } from "./event-api.ts";
export type { EventQuery, StreamEvent } from "./event-api.ts";
export { duration } from "./duration.ts";
export {
  attemptPageSchema,
  attemptQuerySchema,
  contentionSchema,
  fightsQuerySchema,
  fightsSchema,
  rollupsQuerySchema,
  rollupsSchema,
} from "./history-api.ts";
export type {
  AttemptListQuery,
  AttemptPage,
  AttemptSummary,
  Contention,
  Fights,
  Rollups,
} from "./history-api.ts";
export { OVERVIEW_PROBLEMS, overviewQuerySchema, overviewSchema } from "./overview-api.ts";
export type {
  Overview,
  OverviewController,
  OverviewProblem,
  OverviewWorkflow,
} from "./overview-api.ts";
export {
  RUN_STATUSES,
  runListSchema,
  retryRunSchema,
  runQuerySchema,
  runSchema,
  runWaitQuerySchema,
  scheduleListSchema,
  scheduleQuerySchema,
  signalRunSchema,
  startedRunSchema,
  startRunSchema,
} from "./run-api.ts";
export type {
  RunDetail,
  RunList,
  RetryRun,
  RunListQuery,
  ScheduleList,
  SignalRun,
  StartedRunAnswer,
  StartRun,
} from "./run-api.ts";
export { describeSettings, findSettingsIssues, readSettings, settingsSchema } from "./settings.ts";
export type { SettingDoc, Settings, SettingsInput } from "./settings.ts";
export {
  cancelAnswerSchema,
  clusterQuerySchema,
  controllerListSchema,
  deadLetterQuerySchema,
  KEY_PHASES,
  keyListSchema,
  keyQuerySchema,
  orderListSchema,
  orderSchema,
  ordersQuerySchema,
  pauseListSchema,
  pauseOrderSchema,
  pauseSchema,
  pausesQuerySchema,
  queueListSchema,
  releaseAnswerSchema,
  releaseOrderSchema,
  resumeAnswerSchema,
  workerListSchema,
} from "./queue-api.ts";
export type {
  CancelAnswer,
  ControllerList,
  KeyItem,
  KeyList,
  KeyListQuery,
  OrderList,
  PauseList,
  PauseOrder,
  PauseView,
  QueueList,
  ReleaseAnswer,
  ReleaseOrder,
  ResumeAnswer,
  WorkerList,
} from "./queue-api.ts";
export {
  acceptedReconcileSchema,
  createReconcilesSchema,
  createReconcileSchema,
  reconcileResultsSchema,
  guardListSchema,
  guardOrderSchema,
  guardRateSchema,
  guardViewSchema,
  objectAttemptsSchema,
  objectHistorySchema,
  problemSchema,
  reconcileNowSchema,
  reconcileStateSchema,
  waitQuerySchema,
} from "./http-api.ts";
export type {
  AcceptedReconcile,
  CreateReconcile,
  GuardList,
  GuardOrder,
  GuardView,
  ObjectAttempts,
  ObjectHistory,
  Problem,
  ReconcileResults,
  ReconcileState,
} from "./http-api.ts";
export {
  newTokenSchema,
  ROLES,
  scopeSchema,
  sessionSchema,
  tokenViewSchema,
  whoamiSchema,
} from "./token-api.ts";
export type { NewToken, Role, Scope, TokenView, Whoami } from "./token-api.ts";
