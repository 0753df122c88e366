import { isJsonObject, setOwn, type JsonObject, type JsonValue } from "@konverge/core";
import type { Schema } from "../schema/schema.ts";
import { EMPTY_FIELDS, isEmptySet, type FieldSet } from "./field-set.ts";
import {
  isNamedMember,
  itemElement,
  itemSchema,
  memberOrOpen,
  OPEN_SCHEMA,
  shapeOf,
} from "./typed-schema.ts";

type Keyed = Parameters<typeof itemElement>[0];

/** Merges an applied configuration into a live value, like structured-merge-diff's `Merge`. Changes neither. */
export function mergeTyped(
  schema: Schema,
  live: JsonValue | undefined,
  applied: JsonValue,
): JsonValue {
  if (live === undefined || live === null) return applied;
  const shape = shapeOf(schema, applied);
  if (shape.kind === "map" && !shape.atomic && isJsonObject(live) && isJsonObject(applied)) {
    if (Object.keys(live).length === 0) return applied;
    const merged: JsonObject = { ...live };
    for (const [key, value] of Object.entries(applied)) {
      const member = memberOrOpen(schema, key) ?? OPEN_SCHEMA;
      const own = Object.hasOwn(live, key) ? live[key] : undefined;
      setOwn(merged, key, mergeTyped(member, own, value));
    }
    return merged;
  }
  if (shape.kind === "list" && Array.isArray(live) && Array.isArray(applied)) {
    const { relation } = shape;
    return relation.kind === "atomic" ? applied : mergeLists(schema, relation, live, applied);
  }
  return applied;
}

/** Applied items keep their applied order; other live items keep their position between the shared ones. */
function mergeLists(
  schema: Schema,
  relation: Keyed,
  live: readonly JsonValue[],
  applied: readonly JsonValue[],
): JsonValue[] {
  const items = itemSchema(schema);
  const elementOf = (item: JsonValue) => itemElement(relation, item, items) ?? "";
  const left = live.map((item) => ({ element: elementOf(item), item }));
  const right = applied.map((item) => ({ element: elementOf(item), item }));
  const inLeft = new Map(left.map(({ element, item }) => [element, item]));
  const inRight = new Set(right.map(({ element }) => element));
  const shared = right.filter(({ element }) => inLeft.has(element)).map(({ element }) => element);
  const done = new Set<string>();
  const out: JsonValue[] = [];
  let next = shared.shift();
  let l = 0;
  let r = 0;
  const takeRight = (element: string, item: JsonValue) => {
    done.add(element);
    out.push(mergeTyped(items, inLeft.get(element), item));
    r++;
    if (element === next) next = shared.shift();
  };
  while (l < left.length || r < right.length) {
    const own = left[l];
    const other = right[r];
    if (own !== undefined && other !== undefined) {
      if (own.element === other.element) {
        takeRight(other.element, other.item);
        l++;
        continue;
      }
      if (inRight.has(own.element) && next !== undefined && next !== own.element) {
        l++;
        continue;
      }
    }
    if (own !== undefined) {
      if (!inRight.has(own.element)) {
        out.push(own.item);
        l++;
        continue;
      }
      if (done.has(own.element)) l++;
    }
    if (other !== undefined) takeRight(other.element, other.item);
  }
  return out;
}

/**
 * Removes fields, like structured-merge-diff's `RemoveItems`: a value without remaining content becomes undefined or
 * null.
 */
export function removeFields(
  schema: Schema,
  value: JsonValue,
  fields: FieldSet,
): JsonValue | undefined {
  if (isEmptySet(fields)) return value;
  const shape = shapeOf(schema, value);
  if (shape.kind === "map" && isJsonObject(value)) {
    if (shape.atomic) return undefined;
    const kept: JsonObject = {};
    for (const [key, entry] of Object.entries(value)) {
      const element = `f:${key}`;
      if (fields.members.has(element)) continue;
      const below = fields.children.get(element) ?? EMPTY_FIELDS;
      const member = memberOrOpen(schema, key) ?? OPEN_SCHEMA;
      // Go leaves a null in place of a map or list that lost its last item; encoding the object drops it again.
      const rest = removeFields(member, entry, below);
      if (rest !== undefined) setOwn(kept, key, rest);
    }
    return Object.keys(kept).length === 0 ? undefined : kept;
  }
  if (shape.kind === "list" && Array.isArray(value)) {
    const { relation } = shape;
    if (relation.kind === "atomic") return undefined;
    const items = itemSchema(schema);
    const kept: JsonValue[] = [];
    for (const item of value) {
      const element = itemElement(relation, item, items) ?? "";
      if (fields.members.has(element)) continue;
      const rest = removeFields(items, item, fields.children.get(element) ?? EMPTY_FIELDS);
      if (rest !== undefined) kept.push(rest);
    }
    return kept.length === 0 ? undefined : kept;
  }
  return value;
}

/** Adds every declared field that has fields below it as a member itself, so that an emptied struct can be removed. */
export function withNamedParents(schema: Schema, set: FieldSet): FieldSet {
  const members = new Set(set.members);
  const children = new Map<string, FieldSet>();
  for (const [element, child] of set.children) {
    const key = element.slice(2);
    const isField = element.startsWith("f:");
    if (isField && isNamedMember(schema, key)) members.add(element);
    const below = isField ? (memberOrOpen(schema, key) ?? OPEN_SCHEMA) : itemSchema(schema);
    children.set(element, withNamedParents(below, child));
  }
  return { members, children };
}
