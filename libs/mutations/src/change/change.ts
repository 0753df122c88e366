import type { JsonObject, JsonValue, ResourceRef } from "@konverge/core";

/** The object that a mutation changes. Without a namespace, it is cluster-scoped. */
export type MutatedObject = Omit<ResourceRef, "uid">;

/** An operation of RFC 6902. */
export type JsonPatchOperation =
  | {
      readonly op: "add" | "replace" | "test";
      readonly path: string;
      readonly value: JsonValue;
    }
  | { readonly op: "remove"; readonly path: string }
  | { readonly op: "move" | "copy"; readonly from: string; readonly path: string };

/** One change of a draft. Paths are JSON Pointers (RFC 6901). */
export type DraftChange =
  /** Sets a value. Missing objects above it are created. */
  | { readonly kind: "set"; readonly path: string; readonly value: JsonValue }
  /** JSON Merge Patch (RFC 7386). */
  | { readonly kind: "merge"; readonly patch: JsonObject }
  /** Adds `by` to a number, or to a text of digits as in a ConfigMap. A missing value counts as 0, and becomes a number. */
  | {
      readonly kind: "increment";
      readonly path: string;
      readonly by: number;
      /** Writes the sum as text, for fields whose values are texts. Default: as it was. */
      readonly as?: "number" | "text";
    }
  /** Appends the value to a list unless the list contains it. A missing list is created. */
  | { readonly kind: "append"; readonly path: string; readonly value: JsonValue }
  /** Removes a field; with `value`, removes the equal items of a list. */
  | { readonly kind: "remove"; readonly path: string; readonly value?: JsonValue }
  /** JSON Patch (RFC 6902). */
  | { readonly kind: "jsonPatch"; readonly patch: readonly JsonPatchOperation[] };

/** Server-side apply under a field manager of the caller. */
export interface ApplyChange {
  readonly kind: "apply";
  readonly object: JsonObject;
  readonly fieldManager: string;
  readonly force?: boolean;
}

export type Change = DraftChange | ApplyChange;

/** All must hold when the mutation is applied, after the mutations of the same object before it. */
export interface Preconditions {
  readonly generation?: number;
  readonly exists?: boolean;
  /** Without `value`: the field must be missing. */
  readonly fields?: readonly { readonly path: string; readonly value?: JsonValue }[];
}
