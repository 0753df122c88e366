export type {
  CallObserver,
  CallRecord,
  CallScope,
  ConflictRecord,
  ConflictWinner,
  SentCall,
} from "./call-record.ts";
export { createAttemptSecrets } from "./attempt-secrets.ts";
export type { AttemptSecrets } from "./attempt-secrets.ts";
export { setCondition } from "./conditions.ts";
export type { Condition, WithConditions } from "./conditions.ts";
export { createKubeClient } from "./create-kube-client.ts";
export type { KubeClientOptions } from "./create-kube-client.ts";
export { listFieldOwners } from "./field-owners.ts";
export type { FieldOwner } from "./field-owners.ts";
export { addFinalizer, removeFinalizer } from "./finalizers.ts";
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
  isKubeApiError,
  isMethodNotAllowed,
  isNamespaceTerminating,
  isNotAcceptable,
  isNotFound,
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
  KubeApiError,
  suggestsDelayMs,
} from "./kube-api-error.ts";
export type { ErrorRef, KubeApiErrorFields, StatusCause } from "./kube-api-error.ts";
export type {
  ApplyOptions,
  CallOptions,
  ChangeDraft,
  DeepPartial,
  DeleteOptions,
  DiscoveredResource,
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
  RawAnswer,
  RawRequest,
  ReplaceOptions,
  ServerVersion,
} from "./kube-client.ts";
export { untracked } from "./field-tracker.ts";
export { isServed } from "./is-served.ts";
export { LEASE, startLeaderElection } from "./leader-election.ts";
export type { LeaderElection, LeaderElectionOptions, Lease } from "./leader-election.ts";
export { loadKubeCredentials } from "./kube-credentials.ts";
export type { Authorization, KubeCredentials } from "./kube-credentials.ts";
export type { KubeconfigOptions } from "./kubeconfig.ts";
export { ownerOf, setControllerReference, setOwnerReference } from "./owner-references.ts";
export type { Owned } from "./owner-references.ts";
export { findOwners } from "./ownership-conflict.ts";
export { resourceName } from "./resource-path.ts";
export type { NamespacedName } from "./resource-path.ts";
export { recordEvent } from "./record-event.ts";
export type { ObjectEventInput } from "./record-event.ts";
export {
  completionOf,
  findUnseenGeneration,
  isAboutOlderGeneration,
  readinessOf,
  wordsOf,
} from "./readiness.ts";
export type { Readiness, ReadinessOptions } from "./readiness.ts";
export { createReflector } from "./reflector.ts";
export type { Reflector, ReflectorEvent, ReflectorOptions } from "./reflector.ts";
export type { ObjectEvent } from "./reflector-store.ts";
export { findCondition } from "./reported-conditions.ts";
export type { ReportedCondition } from "./reported-conditions.ts";
export { retryOnConflict } from "./retry-on-conflict.ts";
export type { RetryOnConflictOptions } from "./retry-on-conflict.ts";
export { findTakenFields } from "./taken-fields.ts";
export type { TakenField } from "./taken-fields.ts";
export type { TlsMaterial } from "./tls-material.ts";
export type { WatchEvent, WatchOptions } from "./watch.ts";
