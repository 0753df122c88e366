import { CallError } from "../api/call.ts";

/** A field as it was filled in; empty when there is none of that name. */
export function textOf(fields: FormData, name: string): string {
  const value = fields.get(name);
  return typeof value === "string" ? value : "";
}

/** A field that holds JSON, under its name; nothing when it is empty. @throws CallError when it is no JSON */
export function jsonOf(fields: FormData, name: string): Readonly<Record<string, unknown>> {
  const text = textOf(fields, name).trim();
  if (text === "") return {};
  try {
    return { [name]: JSON.parse(text) as unknown };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const detail = `${why}. A text is written in double quotes; it may be left empty.`;
    throw new CallError({ code: "invalid_request", title: `The ${name} is no JSON.`, detail });
  }
}
