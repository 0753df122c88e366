import type { ResourceType } from "@konverge/core";

/** The RBAC verbs that calls of a handler can require. */
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

/** Access of a handler beyond the kinds of its controller. */
export interface Permission {
  readonly type: ResourceType;
  readonly verbs: readonly AccessVerb[];
  /** Default: the object itself. */
  readonly subresource?: string;
}
