import { isJsonObject, jsonEquals, type JsonObject, type JsonValue } from "@konverge/core";
import type { Schema } from "../schema/schema.ts";
import { FieldSetBuilder, type FieldSet } from "./field-set.ts";
import {
  isNamedMember,
  itemElement,
  itemSchema,
  memberOrOpen,
  OPEN_SCHEMA,
  shapeOf,
} from "./typed-schema.ts";

/** The fields that differ between two objects. */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

interface Collector {
  readonly added: FieldSetBuilder;
  readonly modified: FieldSetBuilder;
  readonly removed: FieldSetBuilder;
}

/** Compares two values of one schema, like structured-merge-diff's `Compare`. */
export function compareTyped(schema: Schema, before: JsonValue, after: JsonValue): Comparison {
  const found: Collector = {
    added: new FieldSetBuilder(),
    modified: new FieldSetBuilder(),
    removed: new FieldSetBuilder(),
  };
  compareValues(schema, before, after, [], found);
  return found;
}

function compareValues(
  schema: Schema,
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  path: readonly string[],
  found: Collector,
): void {
  if (before !== undefined && after !== undefined && before === after) return;
  const shape = shapeOf(schema, after ?? before ?? null);
  const isOneSided = before === undefined || after === undefined;
  const isSameKind =
    isOneSided || before === null || after === null || kindOf(before) === kindOf(after);
  const isBothEmpty = isEmpty(before) && isEmpty(after);
  const isWhole =
    shape.kind === "scalar" ||
    isBothEmpty ||
    (shape.kind === "map" ? shape.atomic : shape.relation.kind === "atomic");
  if (isWhole || !isSameKind) {
    if (before === undefined) found.added.add(path);
    else if (after === undefined) found.removed.add(path);
    else if (!jsonEquals(before, after)) found.modified.add(path);
    return;
  }
  if (shape.kind === "map") compareMaps(schema, before, after, path, found);
  else if (shape.kind === "list") {
    const { relation } = shape;
    if (relation.kind !== "atomic") compareLists(schema, relation, { before, after, path, found });
  }
  if (before === undefined) found.added.add(path);
  else if (after === undefined) found.removed.add(path);
}

function compareMaps(
  schema: Schema,
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  path: readonly string[],
  found: Collector,
): void {
  const left: JsonObject = isJsonObject(before) ? before : {};
  const right: JsonObject = isJsonObject(after) ? after : {};
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const member = memberOrOpen(schema, key) ?? OPEN_SCHEMA;
    const a = Object.hasOwn(left, key) ? left[key] : undefined;
    const b = Object.hasOwn(right, key) ? right[key] : undefined;
    compareValues(member, a, b, [...path, `f:${key}`], found);
  }
}

function compareLists(
  schema: Schema,
  relation: Parameters<typeof itemElement>[0],
  sides: {
    readonly before: JsonValue | undefined;
    readonly after: JsonValue | undefined;
    readonly path: readonly string[];
    readonly found: Collector;
  },
): void {
  const items = itemSchema(schema);
  const left = groupItems(sides.before, relation, items);
  const right = groupItems(sides.after, relation, items);
  for (const element of new Set([...left.keys(), ...right.keys()])) {
    const a = left.get(element) ?? [];
    const b = right.get(element) ?? [];
    const path = [...sides.path, element];
    // Duplicate items have no identity of their own and count as one whole.
    if (a.length > 1 && b.length > 1) {
      if (!jsonEquals(a, b)) sides.found.modified.add(path);
    } else if (a.length > 1) {
      if (b[0] !== undefined) compareValues(items, undefined, b[0], path, sides.found);
      sides.found.removed.add(path);
    } else if (b.length > 1) {
      if (a[0] !== undefined) compareValues(items, a[0], undefined, path, sides.found);
      sides.found.added.add(path);
    } else compareValues(items, a[0], b[0], path, sides.found);
  }
}

function groupItems(
  list: JsonValue | undefined,
  relation: Parameters<typeof itemElement>[0],
  items: Schema,
): Map<string, JsonValue[]> {
  const groups = new Map<string, JsonValue[]>();
  for (const item of Array.isArray(list) ? list : []) {
    const element = itemElement(relation, item, items);
    if (element === undefined) continue;
    const group = groups.get(element);
    if (group === undefined) groups.set(element, [item]);
    else group.push(item);
  }
  return groups;
}

/** Returns all fields of a value, like structured-merge-diff's `ToFieldSet`. */
export function fieldsOf(schema: Schema, value: JsonValue): FieldSet {
  const builder = new FieldSetBuilder();
  collectFields(schema, value, [], builder);
  return builder;
}

function collectFields(
  schema: Schema,
  value: JsonValue,
  path: readonly string[],
  builder: FieldSetBuilder,
): void {
  const shape = shapeOf(schema, value);
  if (shape.kind === "scalar") {
    builder.add(path);
    return;
  }
  if (shape.kind === "map") {
    if (shape.atomic || !isJsonObject(value)) {
      builder.add(path);
      return;
    }
    for (const [key, entry] of Object.entries(value)) {
      const below = [...path, `f:${key}`];
      collectFields(memberOrOpen(schema, key) ?? OPEN_SCHEMA, entry, below, builder);
      const isEmptyMap = isJsonObject(entry) && Object.keys(entry).length === 0;
      if (entry === null || isEmptyMap || !isNamedMember(schema, key)) builder.add(below);
    }
    return;
  }
  const { relation } = shape;
  if (relation.kind === "atomic" || !Array.isArray(value)) {
    builder.add(path);
    return;
  }
  const items = itemSchema(schema);
  for (const [element, group] of groupItems(value, relation, items)) {
    const below = [...path, element];
    if (group.length === 1) collectFields(items, group[0] ?? null, below, builder);
    builder.add(below);
  }
}

const kindOf = (value: JsonValue) => (Array.isArray(value) ? "list" : typeof value);

const isEmpty = (value: JsonValue | undefined) =>
  value === undefined ||
  value === null ||
  (Array.isArray(value)
    ? value.length === 0
    : isJsonObject(value) && Object.keys(value).length === 0);
