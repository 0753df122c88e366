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
  /** The kind to access. */
  readonly type: ResourceType;
  /** The verbs that the calls require: `kube.mutate` and `apply` require `patch`, `kube.replace` requires `update`. */
  readonly verbs: readonly AccessVerb[];
  /** Default: the object itself. */
  readonly subresource?: string;
}
