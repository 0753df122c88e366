/** The kinds of state of a cluster that a restore of Redis holds until an operator accepts them. */
export const CLUSTER_KINDS: readonly ["keys", "runs", "pauses", "guard"] = [
  "keys",
  "runs",
  "pauses",
  "guard",
];

/** All kinds. Tokens belong to the installation, not to a cluster. */
export const RESTORE_KINDS: readonly [...typeof CLUSTER_KINDS, "tokens"] = [
  ...CLUSTER_KINDS,
  "tokens",
];

export type RestoreKind = (typeof RESTORE_KINDS)[number];
