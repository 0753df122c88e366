export { attemptRecordingSchema } from "./attempt-recording.ts";
export type { AttemptRecording } from "./attempt-recording.ts";
export {
  ATTEMPT_OUTCOMES,
  attemptLogSchema,
  attemptRecordSchema,
  HINT_CODES,
  lostRecordSchema,
} from "./attempt-record.ts";
export type { AttemptRecord, Hint } from "./attempt-record.ts";
export { hintDocs, HINTS } from "./hint.ts";
export type { HintCode } from "./hint.ts";
export { planRecordSchema, PLAN_ACTIONS } from "./plan-record.ts";
export type { PlanRecord } from "./plan-record.ts";
export { LOOP_CAUSE, loopStateSchema } from "./loop-state.ts";
export type { LoopState } from "./loop-state.ts";
export { isSensitive, redactObject, redactPatch } from "./redact.ts";
