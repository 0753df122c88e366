import type { JsonObject, JsonValue } from "./lossless-json.ts";

/** The kinds of change of a mutation. */
export const MUTATION_OPS = [
  "set",
  "merge",
  "increment",
  "append",
  "remove",
  "jsonPatch",
  "apply",
] as const;

/** The subresources that a mutation can change. */
export const MUTATION_SUBRESOURCES = ["status", "scale"] as const;
export type MutationSubresource = (typeof MUTATION_SUBRESOURCES)[number];

/** The final states of a mutation. */
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

/** The states of a mutation, the final ones last. */
export const MUTATION_STATES: readonly ["waiting", "applying", ...typeof MUTATION_OUTCOMES] = [
  "waiting",
  "applying",
  ...MUTATION_OUTCOMES,
];
export type MutationState = (typeof MUTATION_STATES)[number];

/** One change of an object. Paths are JSON Pointers (RFC 6901) and never empty. */
export type MutationChange =
  /** Sets a field. Missing parents are created. `-` at the end of a list's path appends. */
  | { readonly op: "set"; readonly path: string; readonly value: JsonValue }
  /** An RFC 7396 merge patch. */
  | { readonly op: "merge"; readonly patch: JsonObject }
  /** Adds an integer. A missing field starts at 0; a field that is text stays text. */
  | { readonly op: "increment"; readonly path: string; readonly by: number }
  /** Adds an item to a list unless an equal one exists. A missing list is created. */
  | { readonly op: "append"; readonly path: string; readonly value: JsonValue }
  /** Removes a field, or with `value` the equal items of a list. */
  | { readonly op: "remove"; readonly path: string; readonly value?: JsonValue }
  /** An RFC 6902 JSON Patch. */
  | { readonly op: "jsonPatch"; readonly patch: readonly JsonObject[] }
  /** A server-side apply. The only change of its mutation. */
  | {
      readonly op: "apply";
      readonly object: JsonObject;
      readonly fieldManager: string;
      readonly force?: boolean;
    };

/** Conditions on the object on which a mutation is applied. All must hold. */
export interface MutationPreconditions {
  readonly exists?: boolean;
  readonly generation?: number;
  readonly fields?: readonly FieldCondition[];
}

/** A condition on a field: its value, or whether it exists. */
export type FieldCondition =
  | { readonly path: string; readonly value: JsonValue }
  | { readonly path: string; readonly exists: boolean };

/** A kind that the configuration opens for mutations, as workers announce it. */
export interface OpenKind {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Plural. */
  readonly resource: string;
  readonly scope: "Namespaced" | "Cluster";
  /** True if its objects contain secrets; values of its mutations are not shown. */
  readonly sensitive?: boolean;
  /** JSON Pointers of the fields that mutations may change, each with all fields below it. Default: all. */
  readonly paths?: readonly string[];
  /** Role that a token needs. Default `operator`. */
  readonly role?: "operator" | "admin";
}
