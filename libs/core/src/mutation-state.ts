/** The kinds of change that a mutation can make. */
export const CHANGE_KINDS = [
  "set",
  "merge",
  "increment",
  "append",
  "remove",
  "jsonPatch",
  "apply",
] as const;

export type ChangeKind = (typeof CHANGE_KINDS)[number];

/**
 * The results of a mutation. `applied`: written. `unchanged`: the object already had the content. `rejected`: the API
 * server rejected the change, or it does not fit the object. `replaced`: the object has another uid. `expired`: the deadline passed first.
 */
export const MUTATION_OUTCOMES = [
  "applied",
  "unchanged",
  "rejected",
  "precondition_failed",
  "not_found",
  "replaced",
  "expired",
  "cancelled",
] as const;

export type MutationOutcome = (typeof MUTATION_OUTCOMES)[number];

/** `applying`: a worker has taken the mutation, so it can no longer be cancelled. The others are the outcomes. */
export const MUTATION_STATES = [
  "waiting",
  "applying",
  "applied",
  "unchanged",
  "rejected",
  "precondition_failed",
  "not_found",
  "replaced",
  "expired",
  "cancelled",
] as const;

export type MutationState = (typeof MUTATION_STATES)[number];
