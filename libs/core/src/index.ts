export { AUDIT_ACTIONS } from "./audit-action.ts";
export { callerOf, framesOf, typeOfError } from "./error-frames.ts";
export { formatApiVersion, parseApiVersion } from "./api-object.ts";
export type {
  ApiObject,
  ManagedFieldsEntry,
  ObjectMeta,
  ResourceRef,
  OwnerReference,
  ResourceType,
} from "./api-object.ts";
export {
  nextDelay,
  conflictBackoff,
  defaultBackoff,
  defaultRetry,
  defineBackoff,
  failureBackoff,
  findBackoffPolicyIssues,
  rejectedBackoff,
} from "./backoff-policy.ts";
export type { NextDelay, Jitter, BackoffPolicy } from "./backoff-policy.ts";
export { deepFreeze } from "./deep-freeze.ts";
export { defined } from "./defined.ts";
export { isoTime } from "./iso-time.ts";
export { toMs } from "./duration.ts";
export type { Duration } from "./duration.ts";
export {
  ensureError,
  ERRORS,
  findCause,
  invalidConfig,
  isKonvergeError,
  KonvergeError,
  TerminalError,
} from "./errors.ts";
export type { ErrorCode, ErrorIssue, KonvergeErrorOptions } from "./errors.ts";
export { CALL_PRIORITIES } from "./gate.ts";
export type {
  AdmitOptions,
  CallPriority,
  CallResult,
  CallVerb,
  Gate,
  GateCall,
  Permit,
  FaultScope,
  WaitingCall,
} from "./gate.ts";
export { applyJsonPatch, JsonPatchError } from "./json-patch.ts";
export { KEY_PHASES } from "./key-phase.ts";
export type { KeyPhase } from "./key-phase.ts";
export { linkAbort } from "./link-abort.ts";
export { createLocalGate, sleepMs } from "./local-gate.ts";
export { readLogCall } from "./log-call.ts";
export { LOG_LEVELS, logFieldsText, parseLogFields } from "./log-line.ts";
export type { LogLevel } from "./log-line.ts";
export { startLongTimer } from "./long-timer.ts";
export type { LocalGateOptions } from "./local-gate.ts";
export { FLOORS, LARGEST_FLOOR, MAX_LEASE, ORDER, TOKEN_RANK } from "./guard/admit-call.ts";
export type { AdmitResponse, AdmitRequest, BreakerMode } from "./guard/admit-call.ts";
export { BREAKER } from "./guard/breaker-rules.ts";
export type { OpeningReason } from "./guard/breaker-rules.ts";
export {
  bucketSize,
  checkGuardLimits,
  CLASSIC_GUARD_LIMITS,
  DEFAULT_GUARD_LIMITS,
  findGuardLimitIssues,
  findInFlightIssue,
  findRateIssue,
  GUARD_RATES,
  guardLimits,
} from "./guard/guard-limits.ts";
export type { GuardLimits, GuardLimitsInput } from "./guard/guard-limits.ts";
export { breakerLimits, DEFAULT_BREAKER_LIMITS } from "./guard/breaker-limits.ts";
export type { BreakerLimits } from "./guard/breaker-limits.ts";
export { findLimit, findLimitIssues, findUseIssue, limitRules } from "./limits/limit-options.ts";
export type { LimitOptions, LimitRules, NamedLimits } from "./limits/limit-options.ts";
export {
  askPermit,
  callWaiters,
  leaveLine,
  LIMIT,
  newLimitState,
  releaseSlot,
  renewSlot,
} from "./limits/limit-state.ts";
export type { LimitState, PermitAnswer, PermitAsk } from "./limits/limit-state.ts";
export { limitWait, LimitWaitError } from "./limits/limits.ts";
export type { HeldPermit, Limits, LimitUse, PermitRequest, PermitResult } from "./limits/limits.ts";
export {
  cloneJson,
  getOwn,
  isJsonObject,
  isRawNumber,
  jsonEquals,
  parseJson,
  setOwn,
} from "./lossless-json.ts";
export type { JsonObject, JsonValue, RawNumber } from "./lossless-json.ts";
export { applyMergePatch, diffMergePatch } from "./merge-patch.ts";
export { namespaceField, namespaceSegment, NO_NAMESPACE } from "./no-namespace.ts";
export { formatKey, parseKey } from "./object-key.ts";
export { metadataOf, SERVER_METADATA } from "./object-metadata.ts";
export type { ObjectKey } from "./object-key.ts";
export {
  dns1035LabelErrors,
  dnsLabelErrors,
  labelValueErrors,
  qualifiedNameErrors,
  subdomainErrors,
} from "./name-rules.ts";
export {
  NOTIFICATION_EVENTS,
  NOTIFICATION_FORMATS,
  NOTIFICATION_STATES,
} from "./notification-event.ts";
export type {
  Fault,
  NotificationEvent,
  NotificationFormat,
  NotificationState,
} from "./notification-event.ts";
export { findNameIssue } from "./object-name.ts";
export { shortName } from "./short-name.ts";
export { CONVERGENCE_CAUSES, divideConvergence } from "./convergence.ts";
export type { ConvergenceCause, TimeSpan } from "./convergence.ts";
export { endedWell, handlerSucceeded, isFinal, OUTCOME_KINDS } from "./outcome.ts";
export type { Outcome, OutcomeKind } from "./outcome.ts";
export {
  codecName,
  comparableText,
  fingerprintOf,
  sameEncoded,
  describeEncoded,
  findCodecIssue,
  formatEncoded,
  isEncoded,
  parseEncoded,
  showEncoded,
} from "./payload-codec.ts";
export type {
  CodecContext,
  CodecValueKind,
  ComparableText,
  EncodedValue,
  PayloadCodec,
} from "./payload-codec.ts";
export { parseRedisUrl, showRedisUrl } from "./redis-url.ts";
export type { RedisAddress, RedisFiles, RedisUrl } from "./redis-url.ts";
export { checkRedisVersion } from "./redis-version.ts";
export { RUN_ID_FORM } from "./run-id.ts";
export { CHANGE_KINDS, MUTATION_OUTCOMES, MUTATION_STATES } from "./mutation-state.ts";
export type { ChangeKind, MutationOutcome, MutationState } from "./mutation-state.ts";
export { RUN_STATUSES } from "./run-status.ts";
export { findLabelIssue, MAX_LABELS } from "./run-labels.ts";
export { MAX_RUN_LIMITS, type RunLimits } from "./run-limits.ts";
export type { RunLabels } from "./run-labels.ts";
export type { RunStatus } from "./run-status.ts";
export { SCHEDULE_OVERLAPS } from "./schedule-overlap.ts";
export type { ScheduleOverlap } from "./schedule-overlap.ts";
export { TRIGGER_KINDS } from "./request-trigger.ts";
export type { Trigger, TriggerKind } from "./request-trigger.ts";
export { resourceId } from "./resource-name.ts";
export { compareResourceVersions } from "./resource-version.ts";
export { CLUSTER_KINDS, RESTORE_KINDS } from "./restore-kinds.ts";
export type { RestoreKind } from "./restore-kinds.ts";
export { takeToken } from "./token-bucket.ts";
export type { BucketLimits } from "./token-bucket.ts";
export { formatTraceparent, parseTraceparent } from "./traceparent.ts";
export type { TraceParent } from "./traceparent.ts";
export { WORKER_ROLES } from "./worker-role.ts";
export type { WorkerRole } from "./worker-role.ts";
