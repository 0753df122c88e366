import { BOOL, DYN, INT, listOf, mapOf, STRING, type CelType } from "./cel-type.ts";
import { escapeName } from "./escape-name.ts";
import { additionalSchema, withTypeAndObjectMeta, type RuleSchema } from "./rule-schema.ts";

/**
 * Returns the type of values of a schema, or undefined if CEL cannot see them. `name` is the prefix of the names of
 * objects in error messages.
 */
export function schemaType(schema: RuleSchema, name: string, isRoot = false): CelType | undefined {
  if (schema["x-kubernetes-int-or-string"] === true) return DYN;
  const full = isRoot ? withTypeAndObjectMeta(schema) : schema;
  switch (full.type) {
    case "array": {
      const element = full.items && inner(full.items, `${name}.@idx`);
      return element && listOf(element);
    }
    case "object":
      return objectType(full, name);
    case "string":
      return stringType(full.format);
    case "boolean":
      return BOOL;
    case "number":
      return { kind: "double" };
    case "integer":
      return INT;
    default:
      return undefined;
  }
}

const inner = (schema: RuleSchema, name: string) =>
  schemaType(schema, name, schema["x-kubernetes-embedded-resource"] === true);

function objectType(schema: RuleSchema, name: string): CelType | undefined {
  const additional = additionalSchema(schema);
  if (additional !== undefined) {
    const value = inner(additional, `${name}.@elem`);
    return value && mapOf(STRING, value);
  }
  const fields = new Map<string, CelType>();
  for (const [property, member] of Object.entries(schema.properties ?? {})) {
    const escaped = escapeName(property);
    if (escaped === undefined) continue;
    const type = inner(member, `${name}.${escaped}`);
    if (type !== undefined) fields.set(escaped, type);
  }
  return { kind: "object", name, fields };
}

function stringType(format: string | undefined): CelType {
  switch (format) {
    case "byte":
      return { kind: "bytes" };
    case "duration":
      return { kind: "duration" };
    case "date":
    case "date-time":
      return { kind: "timestamp" };
    default:
      return STRING;
  }
}
