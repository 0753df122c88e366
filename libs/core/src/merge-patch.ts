import {
  cloneJson,
  getOwn,
  isJsonObject,
  jsonEquals,
  setOwn,
  type JsonObject,
  type JsonValue,
} from "./lossless-json.ts";

/**
 * Returns the RFC 7396 merge patch that turns `before` into `after`, or undefined if they are equal. Lists are replaced as a
 * whole. A member that is null or undefined in `after` is deleted, because a merge patch cannot express null.
 */
export function diffMergePatch(before: JsonObject, after: JsonObject): JsonObject | undefined {
  const patch: JsonObject = {};
  for (const key of Object.keys(before)) {
    const gone = !Object.hasOwn(after, key) || after[key] === undefined;
    if (gone && before[key] !== undefined) setOwn(patch, key, null);
  }
  for (const key of Object.keys(after)) {
    const next = after[key];
    if (next === undefined) continue;
    const previous = getOwn(before, key);
    if (isJsonObject(previous) && isJsonObject(next)) {
      const nested = diffMergePatch(previous, next);
      if (nested !== undefined) setOwn(patch, key, nested);
    } else if (jsonEquals(previous, next)) {
      continue;
    } else if (next !== null || previous !== undefined) {
      setOwn(patch, key, cloneJson(next));
    }
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/** Applies an RFC 7396 merge patch. Returns a new value; neither argument is changed. */
export function applyMergePatch(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return cloneJson(patch);
  const result: JsonObject = isJsonObject(target) ? cloneJson(target) : {};
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (value === undefined) continue;
    if (value === null) delete result[key];
    else setOwn(result, key, applyMergePatch(getOwn(result, key), value));
  }
  return result;
}
