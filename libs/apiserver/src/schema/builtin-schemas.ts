import type { JsonObject } from "@konverge/core";
import { BUILTIN_DEFINITIONS } from "./builtin-definitions.ts";
import type { Schema } from "./schema.ts";

/**
 * Names of a struct's members by their numbers in protobuf. A `*` marks a scalar that may be set to its zero value; a
 * number may have the members of an inner struct, which JSON has in the outer one.
 */
export type FieldNumbers = { readonly [number: string]: string | FieldNumbers };

let lines: Map<string, string> | undefined;
let definitions: Map<string, Schema> | undefined;
const numbers: WeakMap<Schema, FieldNumbers> = new WeakMap();
const names: WeakMap<Schema, string> = new WeakMap();

/**
 * Returns the schema of a built-in kind by its name in the table, for example `apps.v1.Deployment`, with resolved
 * references.
 */
export function builtinSchema(name: string): Schema {
  const schema = findBuiltinSchema(name);
  if (schema === undefined) throw new Error(`no definition ${name}: generate the table with it`);
  return schema;
}

/** Returns a definition as it is in the table, with references by name. @throws Error for a name that is not in it */
export function builtinDefinition(name: string): JsonObject {
  lines ??= new Map(
    BUILTIN_DEFINITIONS.trim()
      .split("\n")
      .map((line) => [/^\["([^"]*)"/.exec(line)?.[1] ?? "", line]),
  );
  const line = lines.get(name);
  if (line === undefined) throw new Error(`no definition ${name}: generate the table with it`);
  return (JSON.parse(line) as [string, JsonObject])[1];
}

/** As `builtinSchema`, but returns undefined for a name that is not in the table. */
export function findBuiltinSchema(name: string): Schema | undefined {
  definitions ??= readDefinitions();
  return definitions.get(name);
}

/** Returns the numbers of a definition's members in protobuf. */
export const fieldNumbers = (schema: Schema): FieldNumbers =>
  numbers.get(schema) ?? numbers.get(Object.getPrototypeOf(schema) as Schema) ?? {};

/** Returns Go's type name of a definition, for example `DeploymentSpec`; undefined for a part of a definition. */
export function goTypeName(schema: Schema): string | undefined {
  const name = names.get(schema) ?? names.get(Object.getPrototypeOf(schema) as Schema);
  return name?.slice(name.lastIndexOf(".") + 1);
}

function readDefinitions(): Map<string, Schema> {
  const table = new Map<string, Schema>();
  for (const line of BUILTIN_DEFINITIONS.trim().split("\n")) {
    const [name, schema, fields] = JSON.parse(line) as [string, Schema, FieldNumbers?];
    table.set(name, schema);
    if (fields !== undefined) numbers.set(schema, fields);
    names.set(schema, name);
  }
  // Definitions may be circular (JSONSchemaProps is), so references become shared objects.
  for (const schema of table.values()) resolveMembers(schema, table);
  return table;
}

function resolveMembers(schema: Schema, table: ReadonlyMap<string, Schema>): void {
  for (const [key, member] of Object.entries(schema.properties ?? {})) {
    if (schema.properties !== undefined) schema.properties[key] = resolve(member, table);
  }
  if (schema.items !== undefined) schema.items = resolve(schema.items, table);
  if (typeof schema.additionalProperties === "object") {
    schema.additionalProperties = resolve(schema.additionalProperties, table);
  }
}

function resolve(schema: Schema, table: ReadonlyMap<string, Schema>): Schema {
  const { $ref, ...own } = schema;
  if ($ref === undefined) {
    resolveMembers(schema, table);
    return schema;
  }
  const target = table.get($ref);
  if (target === undefined) throw new Error(`no definition ${$ref}`);
  // Keywords beside a reference (a default, a list's merge key) apply only to this use of it.
  return Object.keys(own).length === 0 ? target : Object.assign(Object.create(target), own);
}
