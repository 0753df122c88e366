export { attemptRecordSchema } from "./attempt-record.ts";
export type { AttemptRecord } from "./attempt-record.ts";
export { duration } from "./duration.ts";
export { isSensitive, redactPatch } from "./redact.ts";
export { describeSettings, findSettingsIssues, readSettings, settingsSchema } from "./settings.ts";
export type { SettingDoc, Settings, SettingsInput } from "./settings.ts";
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
