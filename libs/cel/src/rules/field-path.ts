import { additionalSchema, type RuleSchema } from "../types/rule-schema.ts";

const TOKEN = /\.([^.[\]]+)|\['((?:[^'\\]|\\.)*)'\]/y;

/**
 * Returns a rule's `fieldPath` as it appears in errors, without the leading dot, or undefined if the schema has no such
 * field.
 */
export function normalizeFieldPath(path: string, schema: RuleSchema): string | undefined {
  let current: RuleSchema = schema;
  let normalized = "";
  TOKEN.lastIndex = 0;
  for (let end = 0; end < path.length; end = TOKEN.lastIndex) {
    TOKEN.lastIndex = end;
    const match = TOKEN.exec(path);
    if (match === null) return undefined;
    const name = match[1] ?? (match[2] ?? "").replaceAll(/\\(.)/g, "$1");
    const additional = additionalSchema(current);
    const properties = current.properties ?? {};
    if (current.properties !== undefined) {
      const next = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (next === undefined) return undefined;
      current = next;
      normalized += normalized === "" ? name : `.${name}`;
    } else if (additional !== undefined) {
      current = additional;
      normalized += `[${name}]`;
    } else return undefined;
  }
  return normalized === "" ? undefined : normalized;
}
