import { isJsonObject, isRawNumber, type JsonObject, type JsonValue } from "@konverge/core";
import { isIntOrString, isOpenObject, memberSchema, type Schema } from "../schema/schema.ts";

/** How server-side apply treats a value: which values it walks into, and which it replaces as a whole. */
export type Shape =
  | { readonly kind: "scalar" }
  | { readonly kind: "map"; readonly atomic: boolean }
  | { readonly kind: "list"; readonly relation: ListRelation };

type ListRelation =
  | { readonly kind: "atomic" }
  | { readonly kind: "set" }
  | { readonly kind: "map"; readonly keys: readonly string[] };

/** Schema of an undeclared value: maps are walked into, lists are replaced as a whole. */
export const OPEN_SCHEMA: Schema = {};

/** Returns the shape of `value` under `schema`; a value of another type than declared is a scalar. */
export function shapeOf(schema: Schema, value: JsonValue): Shape {
  if (isJsonObject(value) && !isIntOrString(schema)) {
    return { kind: "map", atomic: schema["x-kubernetes-map-type"] === "atomic" };
  }
  if (Array.isArray(value)) return { kind: "list", relation: listRelation(schema) };
  return { kind: "scalar" };
}

function listRelation(schema: Schema): ListRelation {
  const type = schema["x-kubernetes-list-type"];
  const keys = schema["x-kubernetes-list-map-keys"];
  if (type === "map" && keys !== undefined) return { kind: "map", keys };
  if (type === "set") return { kind: "set" };
  if (type !== undefined || schema["x-kubernetes-patch-strategy"] === undefined) {
    return { kind: "atomic" };
  }
  // Older built-in lists declare it with the keywords of strategic merge patch only.
  if (!schema["x-kubernetes-patch-strategy"].split(",").includes("merge"))
    return { kind: "atomic" };
  const key = schema["x-kubernetes-patch-merge-key"];
  return key === undefined ? { kind: "set" } : { kind: "map", keys: [key] };
}

/** Returns true for a declared member, not for a key of a free map. */
export const isNamedMember = (schema: Schema, key: string): boolean =>
  schema.properties !== undefined && Object.hasOwn(schema.properties, key);

/** Returns the schema of a map's member; open without any declaration, undefined if other members are forbidden. */
export function memberOrOpen(schema: Schema, key: string): Schema | undefined {
  const member = memberSchema(schema, key);
  if (member !== undefined) return member;
  const isUndeclared = schema.properties === undefined && schema.additionalProperties === undefined;
  return isUndeclared || isOpenObject(schema) ? OPEN_SCHEMA : undefined;
}

export const itemSchema = (schema: Schema): Schema => schema.items ?? OPEN_SCHEMA;

/** Returns the path element of a list item; undefined if a key is missing and has no default. */
export function itemElement(
  relation: Exclude<ListRelation, { kind: "atomic" }>,
  item: JsonValue,
  schema: Schema,
): string | undefined {
  if (relation.kind === "set") return `v:${JSON.stringify(item)}`;
  if (!isJsonObject(item)) return undefined;
  const identity: JsonObject = {};
  for (const key of relation.keys.toSorted()) {
    const value = item[key] ?? memberSchema(schema, key)?.default;
    if (value !== undefined) identity[key] = value;
  }
  return Object.keys(identity).length === 0 ? undefined : `k:${JSON.stringify(identity)}`;
}

/** Returns the scalar type that a schema requires; undefined if any is valid. */
export function scalarType(schema: Schema): "string" | "numeric" | "boolean" | undefined {
  if (isIntOrString(schema)) return undefined;
  switch (schema.type) {
    case "string":
      return "string";
    case "integer":
    case "number":
      return "numeric";
    case "boolean":
      return "boolean";
    default:
      return undefined;
  }
}

/** Returns true if `value` has the scalar type that the schema requires. */
export function fitsScalar(schema: Schema, value: JsonValue): boolean {
  switch (scalarType(schema)) {
    case "string":
      return typeof value === "string";
    case "numeric":
      return typeof value === "number" || isRawNumber(value);
    case "boolean":
      return typeof value === "boolean";
    case undefined:
      return true;
  }
}
