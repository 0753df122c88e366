import { getOwn, isJsonObject, setOwn, type JsonObject, type JsonValue } from "@konverge/core";
import { formatPointer, indexOf } from "./pointer.ts";

/** A change that does not fit the object. The message names the path and never a value, which may be a secret. */
export class UnfitChange extends Error {
  override readonly name = "UnfitChange";
}

/** Receives the value at a path, undefined if it is missing. Returns the new one, undefined to remove it. */
export type Update = (value: JsonValue | undefined) => JsonValue | undefined;

export interface UpdateOptions {
  /** True to create missing objects above the path; otherwise nothing changes if one is missing. */
  readonly create: boolean;
}

/**
 * Returns the object with another value at a path. Copies the containers along the path and shares everything else. A null
 * counts as missing.
 * @throws UnfitChange if a container along the path is neither an object nor a list, or an item does not exist
 */
export function updateAt(
  root: JsonObject,
  path: readonly string[],
  update: Update,
  { create }: UpdateOptions,
): JsonObject {
  return updateIn(root, 0) as JsonObject;

  function updateIn(container: JsonValue, depth: number): JsonValue {
    const segment = path[depth];
    if (segment === undefined) throw new UnfitChange("the path is empty");
    const isLast = depth === path.length - 1;
    if (Array.isArray(container)) return updateItem(container, segment, depth);
    if (!isJsonObject(container)) {
      const at = formatPointer(path.slice(0, depth));
      throw new UnfitChange(
        `${at} is ${typeOf(container)}, so ${formatPointer(path)} cannot exist`,
      );
    }
    const before = present(getOwn(container, segment));
    if (isLast) return withMember(container, segment, before, update(before));
    if (before === undefined && !create) return container;
    return withMember(container, segment, before, updateIn(before ?? {}, depth + 1));
  }

  function updateItem(list: readonly JsonValue[], segment: string, depth: number): JsonValue {
    const isLast = depth === path.length - 1;
    if (segment === "-" && isLast && create) {
      const added = update(undefined);
      return added === undefined ? [...list] : [...list, added];
    }
    const index = indexOf(segment, list.length);
    if (index === undefined) {
      if (isLast && !create && /^\d+$/.test(segment)) return [...list];
      const at = formatPointer(path.slice(0, depth));
      throw new UnfitChange(`${at} is a list of ${list.length} items without an item "${segment}"`);
    }
    const before = list[index];
    const after = isLast ? update(present(before)) : updateIn(before ?? {}, depth + 1);
    return after === undefined ? list.toSpliced(index, 1) : list.with(index, after);
  }
}

/** Returns the value at a path, or undefined. */
export function readAt(root: JsonValue, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = root;
  for (const segment of path) {
    if (Array.isArray(value)) value = value[indexOf(segment, value.length) ?? -1];
    else if (isJsonObject(value)) value = getOwn(value, segment);
    else return undefined;
  }
  return present(value);
}

/** The type of a value, for messages. */
export function typeOf(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "missing";
  if (Array.isArray(value)) return "a list";
  if (isJsonObject(value)) return "an object";
  if (typeof value === "string") return "text";
  return typeof value === "boolean" ? "a boolean" : "a number";
}

function present(value: JsonValue | undefined): JsonValue | undefined {
  return value === null ? undefined : value;
}

function withMember(
  container: JsonObject,
  name: string,
  before: JsonValue | undefined,
  after: JsonValue | undefined,
): JsonObject {
  if (after === before) return container;
  const copy: JsonObject = {};
  for (const [key, value] of Object.entries(container)) {
    if (key !== name || after !== undefined)
      setOwn(copy, key, key === name ? (after ?? null) : value);
  }
  if (after !== undefined && !Object.hasOwn(container, name)) setOwn(copy, name, after);
  return copy;
}
