import { CelError, compilePattern } from "@konverge/cel";
import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";
import { invalid, type FieldError } from "../errors/field-error.ts";
import { objectOf, objectsOf } from "../objects/metadata.ts";

/** Returns the errors of the patterns of a definition's schema, which are those of Go. */
export function patternErrors(schema: JsonObject, path: string): FieldError[] {
  const { pattern } = schema;
  const problem = typeof pattern === "string" ? problemOf(pattern) : undefined;
  const own =
    problem === undefined
      ? []
      : [
          invalid(
            `${path}.pattern`,
            String(pattern),
            `must be a valid regular expression, but isn't: ${problem}`,
          ),
        ];
  return [...partsOf(schema, path).flatMap(([part, at]) => patternErrors(part, at)), ...own];
}

function problemOf(pattern: string): string | undefined {
  try {
    compilePattern(pattern);
    return undefined;
  } catch (error) {
    if (error instanceof CelError) return error.message;
    throw error;
  }
}

/** The schemas inside a schema, with their paths. */
function partsOf(schema: JsonObject, path: string): [JsonObject, string][] {
  const single = (name: string, part: JsonValue | undefined): [JsonObject, string][] =>
    isJsonObject(part) ? [[part, `${path}.${name}`]] : [];
  return [
    ...Object.entries(objectOf(schema, "properties") ?? {}).flatMap(([name, part]) =>
      single(`properties[${name}]`, part),
    ),
    ...["additionalProperties", "items", "not"].flatMap((name) => single(name, schema[name])),
    ...["allOf", "anyOf", "oneOf"].flatMap((name) =>
      objectsOf(schema, name).flatMap((part, index) => single(`${name}[${index}]`, part)),
    ),
  ];
}
