export type {
  CallObserver,
  CallRecord,
  CallScope,
  ConflictRecord,
  CompetingWriter,
  SentCall,
} from "./contract/call-record.ts";
export { Urgency } from "./contract/urgency.ts";
export { atLeast, MUST_READ, startFrom } from "./contract/read-basis.ts";
export type { ReadBasis, ServerRead } from "./contract/read-basis.ts";
export { createAttemptSecrets } from "./objects/attempt-secrets.ts";
export type { AttemptSecrets } from "./objects/attempt-secrets.ts";
export { setCondition } from "./objects/conditions.ts";
export type { Condition, WithConditions } from "./objects/conditions.ts";
export { createKubeClient } from "./client/create-kube-client.ts";
export type { KubeClientOptions } from "./client/create-kube-client.ts";
export type { CallDispatcher } from "./wire/connection-pool.ts";
export { fromClientNode, toWireValue } from "./interop/wire-value.ts";
export type { ClientNodeApi, ForwardAnswer, ForwardRequest } from "./contract/forward.ts";
export { createClientNodeApi } from "./interop/client-node-api.ts";
export { convertApiException, findApiError } from "./errors/api-exception.ts";
export { BUILT_IN_GROUPS } from "./names/built-in-groups.ts";
export { isPart, onlyMetadata, onlyPart, partOf, withoutManagedFields } from "./names/kept-part.ts";
export { isNarrower, matchesLabels, parseLabelSelector } from "./names/label-selector.ts";
export type { LabelSelector } from "./names/label-selector.ts";
export { listFieldOwners } from "./mutate/field-owners.ts";
export type { FieldOwner } from "./mutate/field-owners.ts";
export { addFinalizer, removeFinalizer } from "./objects/finalizers.ts";
export { isKubeApiError, KubeApiError } from "./errors/kube-api-error.ts";
export { createKubePlan, type KubePlan, type KubePlanOptions } from "./plan/create-kube-plan.ts";
export { createCallHold, type KubeHold } from "./plan/create-call-hold.ts";
export { isCurrentTime } from "./plan/write-digest.ts";
export type { PlanGap, PlannedObject } from "./plan/planned-object.ts";
export type { CallHold, CallPlan } from "./contract/call-plan.ts";
export type { DiscoveredResource, Discovery } from "./contract/discovery.ts";
export { createDiscovery } from "./client/discovery.ts";
export { createCallRecorder, ENTRY_CHARACTERS } from "./replay/call-recorder.ts";
export type { CallRecorder, NotedCall } from "./replay/call-recorder.ts";
export { CallReplay } from "./replay/call-replay.ts";
export type { CallReplayOptions } from "./replay/call-replay.ts";
export { recordedError } from "./replay/recorded-entry.ts";
export { bodyDifferences } from "./replay/body-differences.ts";
export type { FieldDifference, SameOptions } from "./replay/body-differences.ts";
export type { RecordedCall, RecordedError, Tick } from "./replay/recorded-call.ts";
export type { ComparedWrite } from "./replay/replayed-writes.ts";
export { isDryRun } from "./names/is-dry-run.ts";
export { redactValues } from "./names/sensitive-kinds.ts";
export {
  ignoreNotFound,
  isAlreadyExists,
  isBadRequest,
  isConflict,
  isExpired,
  isFieldManagerConflict,
  isForbidden,
  isGone,
  isInapplicable,
  isInternalError,
  isInvalid,
  isMethodNotAllowed,
  isNamespaceTerminating,
  isNotAcceptable,
  isNotFound,
  isNotPermitted,
  isOptimisticConflict,
  isQuotaExceeded,
  isReplaced,
  isRequestEntityTooLarge,
  isResourceVersionTooLarge,
  isServerTimeout,
  isServiceUnavailable,
  isTimeout,
  isTooManyRequests,
  isUnauthorized,
  isUnsupportedMediaType,
  suggestsDelayMs,
} from "./errors/error-predicates.ts";
export type { ErrorRef, KubeApiErrorFields, StatusCause } from "./errors/kube-api-error.ts";
export type {
  ApplyOptions,
  CallOptions,
  ChangeDraft,
  DeepPartial,
  DeleteOptions,
  GetOptions,
  KubeClient,
  ListOptions,
  ListPageOptions,
  MutateOptions,
  MutateResult,
  NewObject,
  ObjectList,
  ObjectPage,
  Patch,
  PatchOptions,
  RawResponse,
  RawRequest,
  ReplaceOptions,
  ServerVersion,
} from "./contract/kube-client.ts";
export type {
  ApplyCallOptions,
  CreateOrUpdateOptions,
  DeleteCallOptions,
  DeleteCollectionOptions,
  EventInput,
  EvictOptions,
  ExtractOptions,
  HandlerListOptions,
  ListCallOptions,
  LogOptions,
  MutateCallOptions,
  PageCallOptions,
  PatchCallOptions,
  WriteCallOptions,
} from "./contract/call-options.ts";
export type {
  CreateOrUpdateResult,
  KubeCalls,
  ReadonlyObject,
  Scale,
  Seen,
} from "./contract/kube-calls.ts";
export { extractOwned } from "./mutate/extract-owned.ts";
export { assertSelected } from "./objects/assert-selected.ts";
export { evictPod } from "./objects/evict-pod.ts";
export { readLogs } from "./objects/read-logs.ts";
export { readPages } from "./objects/read-pages.ts";
export { parsePath } from "./names/resource-path.ts";
export type { ObjectRef } from "./contract/object-ref.ts";
export type {
  AppliedFields,
  KindName,
  NamedTarget,
  ObjectDraft,
  ObjectIdentity,
  ObjectManifest,
  ObjectTarget,
  ResourceTarget,
} from "./contract/object-target.ts";
export { buildIntent, isChild, withTypeOf } from "./objects/new-object.ts";
export { conflictRecord } from "./mutate/conflict-record.ts";
export { assertOutsideOfChanges, runChange } from "./mutate/nested-mutate.ts";
export { untracked } from "./mutate/field-tracker.ts";
export { isServed } from "./client/is-served.ts";
export { startLeaderElection } from "./reflector/leader-election.ts";
export type { LeaderElection, LeaderElectionOptions } from "./reflector/leader-election.ts";
export { loadKubeCredentials } from "./credentials/kube-credentials.ts";
export type { Authorization } from "./credentials/authorization-cache.ts";
export type { KubeCredentials, KubeCredentialsOptions } from "./credentials/kube-credentials.ts";
export type { KubeConfigObject } from "./credentials/client-node-auth.ts";
export { isKubeConfig } from "./credentials/kube-config-object.ts";
export type { Confinement } from "./credentials/assert-confined.ts";
export type { KubeconfigOptions } from "./credentials/kubeconfig.ts";
export {
  ownerOf,
  ownerUidOf,
  setControllerReference,
  setOwnerReference,
} from "./objects/owner-references.ts";
export type { Owned } from "./objects/owner-references.ts";
export { fieldConflict, findOwners } from "./mutate/ownership-conflict.ts";
export type { NamespacedName } from "./names/resource-path.ts";
export { createEventRecorder } from "./objects/event-recorder.ts";
export type { EventRecorder } from "./objects/event-recorder.ts";
export { recordEvent } from "./objects/record-event.ts";
export type { ObjectEventInput } from "./objects/record-event.ts";
export {
  completionOf,
  findUnseenGeneration,
  isAboutOlderGeneration,
  readinessOf,
  statusTextOf,
} from "./objects/readiness.ts";
export type { ReadinessOptions } from "./objects/readiness.ts";
export type { Readiness } from "./objects/readiness-state.ts";
export { IndexedObjects, indexValues } from "./reflector/indexed-objects.ts";
export type {
  IndexedObjectsOptions,
  IndexedValue,
  IndexFunction,
  ObjectSelection,
} from "./reflector/indexed-objects.ts";
export { createReflector } from "./reflector/reflector.ts";
export type { Reflector, ReflectorEvent, ReflectorOptions } from "./reflector/reflector.ts";
export type { ObjectEvent } from "./reflector/reflector-store.ts";
export { findCondition } from "./objects/reported-conditions.ts";
export type { ReportedCondition } from "./objects/reported-conditions.ts";
export { retryOnConflict } from "./mutate/retry-on-conflict.ts";
export type { RetryOnConflictOptions } from "./mutate/retry-on-conflict.ts";
export { ownsFields } from "./mutate/owns-fields.ts";
export { findTakenFields } from "./mutate/taken-fields.ts";
export type { TakenField } from "./mutate/taken-fields.ts";
export type { TlsMaterial } from "./credentials/tls-material.ts";
export type { WatchEvent, WatchOptions } from "./contract/watch-event.ts";
export { parseBody } from "./wire/parse-body.ts";
