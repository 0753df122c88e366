export type {
  ApplyChange,
  Change,
  DraftChange,
  JsonPatchOperation,
  MutatedObject,
  Preconditions,
} from "./change/change.ts";
export type { OpenKind } from "./change/open-kind.ts";
export { MAX_BATCH, MAX_WAITING } from "./store/mutation-store.ts";
export type {
  CancelAnswer,
  MutationError,
  MutationPage,
  MutationQuery,
  MutationView,
  NewMutation,
  Submitted,
  Verdict,
} from "./store/mutation-store.ts";
export type { Mutations } from "./mutations.ts";
