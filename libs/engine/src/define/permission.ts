import type { ResourceType } from "@konverge/core";

/** Verbs of RBAC that a call of a handler can need. */
export const ACCESS_VERBS = [
  "get",
  "list",
  "watch",
  "create",
  "update",
  "patch",
  "delete",
  "deletecollection",
] as const;
export type AccessVerb = (typeof ACCESS_VERBS)[number];

/** What a handler calls and nothing else tells. */
export interface Permission {
  readonly type: ResourceType;
  readonly verbs: readonly AccessVerb[];
  /** Default: the object itself. */
  readonly subresource?: string;
}
