import { isJsonObject, type JsonValue } from "@konverge/core";
import type { Schema } from "../schema/schema.ts";
import {
  fitsScalar,
  itemElement,
  itemSchema,
  memberOrOpen,
  scalarType,
  shapeOf,
} from "./typed-schema.ts";

/**
 * Returns why an applied configuration does not match its schema, with structured-merge-diff's text; undefined if it
 * does.
 */
export function typedError(schema: Schema, value: JsonValue, path: string): string | undefined {
  const errors = collectErrors(schema, value, path);
  if (errors.length === 0) return undefined;
  return errors.length === 1 ? errors[0] : `errors:\n${errors.map((one) => `  ${one}`).join("\n")}`;
}

function collectErrors(schema: Schema, value: JsonValue, path: string): string[] {
  if (value === null) return [];
  const shape = shapeOf(schema, value);
  if (shape.kind === "map" && isJsonObject(value)) {
    if (schema.type !== undefined && schema.type !== "object") {
      return [`${path}: expected ${scalarType(schema) ?? "list"}, got &{map}`];
    }
    return Object.entries(value).flatMap(([key, entry]) => {
      const member = memberOrOpen(schema, key);
      const below = `${path}.${key}`;
      if (member === undefined) return [`${below}: field not declared in schema`];
      return collectErrors(member, entry, below);
    });
  }
  if (shape.kind === "list" && Array.isArray(value)) {
    const { relation } = shape;
    const items = itemSchema(schema);
    if (relation.kind === "atomic") {
      return value.flatMap((item, index) => collectErrors(items, item, `${path}[${index}]`));
    }
    const seen = new Set<string>();
    return value.flatMap((item, index) => {
      const element = itemElement(relation, item, items);
      if (element === undefined) {
        const keys = relation.kind === "map" ? relation.keys.join(", ") : "";
        return [
          `${path}: element ${index}: associative list with keys has an element that omits key field "${keys}" (and doesn't have default value)`,
        ];
      }
      if (seen.has(element)) return [`${path}: duplicate entries for key ${showKey(element)}`];
      seen.add(element);
      return collectErrors(items, item, `${path}${showKey(element)}`);
    });
  }
  if (schema.type === "object" || schema.type === "array") {
    return [
      `${path}: expected ${schema.type === "object" ? "map" : "list"}, got ${JSON.stringify(value)}`,
    ];
  }
  if (fitsScalar(schema, value)) return [];
  return [
    `${path}: expected ${scalarType(schema) ?? "scalar"}, got &value.valueUnstructured{Value:${JSON.stringify(value)}}`,
  ];
}

function showKey(element: string): string {
  if (element.startsWith("v:")) return `[=${element.slice(2)}]`;
  const keys = Object.entries(JSON.parse(element.slice(2)) as Record<string, JsonValue>);
  return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(",")}]`;
}
