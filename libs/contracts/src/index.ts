export { attemptRecordSchema, lostRecordSchema } from "./attempt-record.ts";
export type { AttemptRecord, Hint } from "./attempt-record.ts";
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
export { hintDocs, HINTS } from "./hint.ts";
export type { HintCode } from "./hint.ts";
export { loopStateSchema } from "./loop-state.ts";
export type { LoopState } from "./loop-state.ts";
export { isSensitive, redactPatch } from "./redact.ts";
export { describeSettings, findSettingsIssues, readSettings, settingsSchema } from "./settings.ts";
export type { SettingDoc, Settings, SettingsInput } from "./settings.ts";
export { KEY_PHASES, pauseSchema } from "./queue-api.ts";
export type { KeyItem, PauseView } from "./queue-api.ts";
export {
  acceptedReconcileSchema,
  createReconcileSchema,
  guardListSchema,
  guardOrderSchema,
  guardRateSchema,
  guardViewSchema,
  objectHistorySchema,
  problemSchema,
  reconcileStateSchema,
} from "./http-api.ts";
export type {
  AcceptedReconcile,
  CreateReconcile,
  GuardList,
  GuardOrder,
  GuardView,
  ObjectHistory,
  Problem,
  ReconcileState,
} from "./http-api.ts";
