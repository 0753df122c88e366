import { findValueIssues, type Schema } from "@konverge/apiserver/schema";
import type { JsonObject, JsonValue } from "@konverge/core";
import type { CrdSchema } from "./crd-schema.ts";

/** Texts to try where the schema has a pattern or format. */
const TEXTS = [
  ..."example a 1 1h 1m 10s 1Gi 80 v1 example.com example/example oci://example.com/a".split(" "),
  ..."https://example.com ssh://git@example.com/a 10.0.0.1 10.0.0.0/8 ::1 /example".split(" "),
  "2030-01-01T00:00:00Z",
  "2030-01-01",
  "aGVsbG8=",
  "00000000-0000-4000-8000-000000000000",
];

/**
 * Returns an object with the fields that a schema requires. Rules in CEL are not considered, and a text that matches no known
 * one is `example`.
 */
export function sampleOf(schema: CrdSchema): JsonObject {
  const { properties = {} } = schema;
  const names = new Set(schema.required ?? []);
  const conditions = [schema, ...(schema.allOf ?? [])];
  for (const { anyOf = [], oneOf = [] } of conditions) {
    for (const branches of [anyOf, oneOf]) {
      for (const name of branches.find(({ required }) => required !== undefined)?.required ?? []) {
        names.add(name);
      }
    }
  }
  for (const name of Object.keys(properties)) {
    if (names.size < (schema.minProperties ?? 0)) names.add(name);
  }
  const isEmbedded = schema["x-kubernetes-embedded-resource"] === true;
  const sample: JsonObject = isEmbedded ? { apiVersion: "v1", kind: "ConfigMap" } : {};
  for (const name of names) {
    const property = properties[name];
    if (property === undefined || property.default !== undefined || name in sample) continue;
    sample[name] = valueOf(property);
  }
  return sample;
}

function valueOf(schema: CrdSchema): JsonValue {
  const first = schema.enum?.find((value) => value !== null);
  if (first !== undefined) return first;
  if (schema["x-kubernetes-int-or-string"] === true) return firstValid(schema, [1, ...TEXTS]);
  switch (schema.type) {
    case "string": {
      const { minLength = 0 } = schema;
      return firstValid(schema, [...TEXTS, "example".padEnd(minLength, "e")]);
    }
    case "boolean":
      return true;
    case "integer":
    case "number":
      return firstValid(schema, [1, schema.minimum ?? 0, (schema.minimum ?? 0) + 1, 0]);
    case "array":
      return Array.from({ length: schema.minItems ?? 0 }, () => valueOf(schema.items ?? {}));
    case "object":
      return sampleOf(schema);
    default:
      return {};
  }
}

function firstValid(schema: CrdSchema, values: readonly JsonValue[]): JsonValue {
  const found = values.find((value) => findValueIssues(schema as Schema, value).length === 0);
  return found ?? values[0] ?? null;
}
