import type { JsonObject, JsonValue, ResourceRef } from "@konverge/core";

/** The object that a mutation changes. Without a namespace, it is cluster-scoped. */
export type MutatedObject = Omit<ResourceRef, "uid">;

/** An operation of RFC 6902. */
export type JsonPatchOperation =
  | { op: "add" | "replace" | "test"; path: string; value: JsonValue }
  | { op: "remove"; path: string }
  | { op: "move" | "copy"; from: string; path: string };

/** One change of a draft. Paths are JSON Pointers (RFC 6901). */
export type DraftChange =
  /** Sets a value. Missing objects above it are created; `-` at the end of a list's path appends. */
  | { readonly kind: "set"; readonly path: string; readonly value: JsonValue }
  /** JSON Merge Patch (RFC 7386). */
  | { readonly kind: "merge"; readonly patch: JsonObject }
  /** Adds an integer to a number or a text of digits, which keeps its type. A missing field counts as 0. */
  | { readonly kind: "increment"; readonly path: string; readonly by: number }
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

/** The changes of one mutation, in order: all of them are made, or none. */
export type Changes = readonly DraftChange[] | readonly [ApplyChange];

/** All must hold when the mutation is applied, after the mutations of the same object before it. */
export interface Preconditions {
  readonly generation?: number;
  readonly exists?: boolean;
  readonly fields?: readonly FieldCondition[];
}

/** The value of a field, or whether it exists. */
export type FieldCondition =
  | { readonly path: string; readonly value: JsonValue }
  | { readonly path: string; readonly exists: boolean };
