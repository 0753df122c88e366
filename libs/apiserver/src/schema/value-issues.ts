import type { JsonValue } from "@konverge/core";
import type { Schema } from "./schema.ts";
import { validateListTypes, validateValue } from "./validate.ts";

export { compilePattern } from "@konverge/cel";
export type { Schema } from "./schema.ts";

/** The name of the checked value in a message. */
const VALUE = "value";

/** Returns why a value does not match a structural schema, with the texts of the API server; empty if it does. */
export function findValueIssues(schema: Schema, value: JsonValue): string[] {
  // Only lists with a schema of their items are searched for duplicates.
  const listed = Array.isArray(value) ? { items: {}, ...schema } : schema;
  return [...validateValue(schema, value, VALUE), ...validateListTypes(listed, value, VALUE)].map(
    ({ field, body }) => `${field}: ${body}`,
  );
}
