export { applyChanges } from "./change/apply-changes.ts";
export type { AppliedChanges } from "./change/apply-changes.ts";
export type {
  ApplyChange,
  Change,
  Changes,
  DraftChange,
  FieldCondition,
  JsonPatchOperation,
  MutatedObject,
  Preconditions,
} from "./change/change.ts";
export { findRestrictions, MARK_PREFIX } from "./change/find-restrictions.ts";
export { findFailedPrecondition } from "./change/preconditions.ts";
export { parsePointer } from "./change/pointer.ts";
export type { OpenKind } from "./change/open-kind.ts";
export { MAX_BATCH, MAX_WAITING } from "./store/mutation-store.ts";
export { MUTATIONS } from "./store/redis-mutation-store.ts";
export type {
  CancelAnswer,
  MutationCounts,
  MutationError,
  MutationPage,
  MutationQuery,
  MutationView,
  NewMutation,
  Submitted,
  Verdict,
} from "./store/mutation-store.ts";
export type { Mutations, MutationWorkerSettings } from "./mutations.ts";
export { openMutations } from "./open-mutations.ts";
export type { MutationsOptions } from "./open-mutations.ts";
export type { MutationObserver } from "./worker/mutation-observer.ts";
