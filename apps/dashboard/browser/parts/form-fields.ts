import { CallError } from "../api/call.ts";

/** Returns the text of a field, or an empty string without such a field. */
export function textOf(fields: FormData, name: string): string {
  const value = fields.get(name);
  return typeof value === "string" ? value : "";
}

/** Parses a JSON field into an object with its name as the key; an empty field yields no key. @throws CallError for invalid JSON */
export function jsonOf(fields: FormData, name: string): Readonly<Record<string, unknown>> {
  const text = textOf(fields, name).trim();
  if (text === "") return {};
  try {
    return { [name]: JSON.parse(text) as unknown };
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    const detail = `${cause}. Put strings in double quotes, or leave the field empty.`;
    throw new CallError({ code: "invalid_request", title: `Invalid JSON in ${name}`, detail });
  }
}
