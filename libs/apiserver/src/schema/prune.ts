import { isJsonObject, setOwn, type JsonObject, type JsonValue } from "@konverge/core";
import { builtinSchema } from "./builtin-schemas.ts";
import { decodeBuiltin } from "./decode-builtin.ts";
import { memberSchema, type Schema } from "./schema.ts";

/** Members of every object, regardless of the schema. */
const ROOT_MEMBERS = new Set(["apiVersion", "kind", "metadata"]);

/**
 * Removes unknown members of a custom resource by its structural schema, in place, and returns their paths. Metadata is
 * reduced to the members of ObjectMeta. Null is removed where it is not allowed, as the real server does after pruning.
 */
export function pruneCustomResource(schema: Schema, object: JsonObject): string[] {
  const metadata = object["metadata"];
  const unknown = isJsonObject(metadata)
    ? decodeBuiltin(builtinSchema("meta.v1.ObjectMeta"), metadata).map((path) => `metadata.${path}`)
    : [];
  pruneObject(schema, object, { path: "", isRoot: true, unknown });
  return unknown.toSorted();
}

interface Place {
  readonly path: string;
  readonly isRoot: boolean;
  readonly unknown: string[];
}

function pruneObject(schema: Schema, object: JsonObject, place: Place): void {
  const preserve = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const isResource = place.isRoot || schema["x-kubernetes-embedded-resource"] === true;
  for (const [key, value] of Object.entries(object)) {
    if (isResource && ROOT_MEMBERS.has(key)) continue;
    const path = place.path === "" ? key : `${place.path}.${key}`;
    const member = memberSchema(schema, key);
    if (member !== undefined) {
      if (value === null && member.nullable !== true && member.default === undefined) {
        if (!preserve) delete object[key];
        continue;
      }
      pruneValue(member, value, { ...place, isRoot: false, path });
    } else if (!preserve && schema.additionalProperties !== true) {
      delete object[key];
      place.unknown.push(path);
    }
  }
}

function pruneValue(schema: Schema, value: JsonValue, place: Place): void {
  if (isJsonObject(value)) pruneObject(schema, value, place);
  else if (Array.isArray(value) && schema.items !== undefined) {
    for (const [index, item] of value.entries()) {
      pruneValue(schema.items, item, { ...place, path: `${place.path}[${index}]` });
    }
  }
}

/** Sets the defaults of the schema in place: for missing members, and for null where it is not allowed. */
export function applyDefaults(schema: Schema, value: JsonValue): void {
  if (Array.isArray(value)) {
    for (const item of value) if (schema.items !== undefined) applyDefaults(schema.items, item);
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [key, member] of Object.entries(schema.properties ?? {})) {
    if (member.default === undefined) continue;
    const isMissing = !Object.hasOwn(value, key) || (value[key] === null && !member.nullable);
    if (isMissing) setOwn(value, key, copyOf(member.default));
  }
  for (const [key, entry] of Object.entries(value)) {
    const member = memberSchema(schema, key);
    if (member !== undefined) applyDefaults(member, entry);
  }
}

const copyOf = (value: JsonValue): JsonValue => JSON.parse(JSON.stringify(value)) as JsonValue;
