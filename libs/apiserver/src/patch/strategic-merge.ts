import {
  cloneJson,
  getOwn,
  isJsonObject,
  jsonEquals,
  setOwn,
  type JsonObject,
  type JsonValue,
} from "@konverge/core";
import { memberSchema, type Schema } from "../schema/schema.ts";

/** A strategic merge patch that is invalid for its kind. */
export class StrategicPatchError extends Error {}

const DIRECTIVES = new Set(["$patch", "$retainKeys"]);
const DELETE_PREFIX = "$deleteFromPrimitiveList/";
const ORDER_PREFIX = "$setElementOrder/";

/**
 * Applies a strategic merge patch: a merge patch in which lists with a merge key are merged item by item. Supports
 * `$patch: delete | replace | merge`, `$deleteFromPrimitiveList` and `$setElementOrder`. Rejects `$retainKeys`, which
 * only kubectl's three-way diff sends. Returns a new value.
 */
export function applyStrategicPatch(
  schema: Schema,
  target: JsonObject,
  patch: JsonObject,
): JsonObject {
  if (patch["$patch"] === "replace") return withoutDirectives(patch);
  if (patch["$patch"] === "delete") return {};
  if (patch["$retainKeys"] !== undefined) {
    throw new StrategicPatchError("$retainKeys is not supported by the embedded API server");
  }
  const result = cloneJson(target);
  for (const [key, value] of Object.entries(patch)) {
    if (DIRECTIVES.has(key) || key.startsWith(ORDER_PREFIX)) continue;
    if (key.startsWith(DELETE_PREFIX)) {
      const name = key.slice(DELETE_PREFIX.length);
      const own = getOwn(result, name);
      const removed = Array.isArray(value) ? value : [];
      if (Array.isArray(own)) {
        result[name] = own.filter((item) => !removed.some((one) => jsonEquals(one, item)));
      }
      continue;
    }
    const member = memberSchema(schema, key) ?? {};
    const own = getOwn(result, key);
    if (value === null) delete result[key];
    else if (Array.isArray(value)) {
      const live = Array.isArray(own) ? own : [];
      const merged = mergeList(member, live, value);
      const requested = patch[`${ORDER_PREFIX}${key}`];
      const order = Array.isArray(requested) ? requested : value;
      setOwn(result, key, isMerged(member) ? reorder(member, merged, { live, order }) : merged);
    } else if (isJsonObject(value)) {
      setOwn(result, key, applyStrategicPatch(member, isJsonObject(own) ? own : {}, value));
    } else setOwn(result, key, value);
  }
  return result;
}

const mergeKeyOf = (schema: Schema): string | undefined => schema["x-kubernetes-patch-merge-key"];
const isMerged = (schema: Schema): boolean =>
  (schema["x-kubernetes-patch-strategy"] ?? "").split(",").includes("merge");

function mergeList(
  schema: Schema,
  own: readonly JsonValue[],
  patch: readonly JsonValue[],
): JsonValue[] {
  if (!isMerged(schema)) return cloneJson([...patch]);
  const isReplaced = patch.some((item) => isJsonObject(item) && item["$patch"] === "replace");
  const items = patch.filter((item) => !isDirectiveOnly(item));
  if (isReplaced) return items.map((item) => (isJsonObject(item) ? withoutDirectives(item) : item));
  const key = mergeKeyOf(schema);
  if (key === undefined) return union(own, items);
  const result = cloneJson([...own]);
  for (const item of items) {
    if (!isJsonObject(item) || item[key] === undefined) {
      throw new StrategicPatchError(`map: map[] does not contain declared merge key: ${key}`);
    }
    const index = result.findIndex((one) => isJsonObject(one) && jsonEquals(one[key], item[key]));
    if (item["$patch"] === "delete") {
      if (index >= 0) result.splice(index, 1);
      continue;
    }
    const before = result[index];
    const merged = applyStrategicPatch(
      schema.items ?? {},
      isJsonObject(before) ? before : {},
      item,
    );
    if (index >= 0) result[index] = merged;
    else result.push(merged);
  }
  return result;
}

function union(own: readonly JsonValue[], patch: readonly JsonValue[]): JsonValue[] {
  const added = patch.filter((item) => !own.some((one) => jsonEquals(one, item)));
  return [...own, ...added];
}

/**
 * Puts the items that the patch names in its order. Other items keep their position in the live list: before the first
 * named item that followed them, or at the end.
 */
function reorder(
  schema: Schema,
  merged: readonly JsonValue[],
  lists: { readonly live: readonly JsonValue[]; readonly order: readonly JsonValue[] },
): JsonValue[] {
  const key = mergeKeyOf(schema);
  const identity = (item: JsonValue) =>
    key !== undefined && isJsonObject(item) ? item[key] : item;
  const indexIn = (list: readonly JsonValue[], item: JsonValue) =>
    list.findIndex((one) => jsonEquals(identity(one), identity(item)));
  const named = merged
    .filter((item) => indexIn(lists.order, item) >= 0)
    .toSorted((a, b) => indexIn(lists.order, a) - indexIn(lists.order, b));
  const others = merged.filter((item) => indexIn(lists.order, item) < 0);
  const result: JsonValue[] = [];
  while (others.length > 0 && named.length > 0) {
    const [other, next] = [others[0] ?? null, named[0] ?? null];
    const [left, right] = [indexIn(lists.live, other), indexIn(lists.live, next)];
    const isBefore = left >= 0 && right >= 0 && left < right;
    result.push((isBefore ? others : named).shift() ?? null);
  }
  return [...result, ...others, ...named];
}

const isDirectiveOnly = (item: JsonValue) =>
  isJsonObject(item) && Object.keys(item).length === 1 && item["$patch"] === "replace";

function withoutDirectives(object: JsonObject): JsonObject {
  const { $patch: _, ...rest } = object;
  return cloneJson(rest);
}
