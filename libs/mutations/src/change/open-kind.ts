import type { ResourceType } from "@konverge/core";

/** A kind that mutations may change, as the workers announce it. */
export interface OpenKind extends Pick<
  ResourceType,
  "group" | "version" | "kind" | "resource" | "scope"
> {
  /** JSON Pointers below which changes are allowed. Absent: the whole object, except its identity. */
  readonly paths?: readonly string[];
  /** True for kinds whose values must not be stored or shown in plain text. */
  readonly sensitive?: boolean;
  /** The role that a token needs. Default `operator`. */
  readonly role?: "admin";
}
