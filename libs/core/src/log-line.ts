export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Names of fields whose values are not stored, as in the output of the processes. */
const SECRET: ReadonlySet<string> = new Set(["token", "password", "authorization"]);
/** As above, but only in an object: alone they are common words. */
const SECRET_MEMBERS: ReadonlySet<string> = new Set(["headers", "data", "stringData"]);
const REDACTED = "(redacted)";

/**
 * Returns the fields of a log line as JSON without the values of secret fields; undefined without fields. Errors become text.
 * Fields that JSON cannot represent are replaced by the reason.
 */
export function logFieldsText(fields: object): string | undefined {
  const replace = function (this: unknown, name: string, value: unknown): unknown {
    if (SECRET.has(name) || (this !== fields && SECRET_MEMBERS.has(name))) return REDACTED;
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    return typeof value === "bigint" ? String(value) : value;
  };
  try {
    const text = JSON.stringify(fields, replace);
    return text === undefined || text === "{}" ? undefined : text;
  } catch (error) {
    return JSON.stringify({ omitted: error instanceof Error ? error.name : "not JSON" });
  }
}

/** Parses the text of `logFieldsText`, from which secrets were removed; a longer text is replaced by its length. */
export function parseLogFields(text: string, maxChars: number): Record<string, unknown> {
  if (text.length > maxChars) return { omitted: `${text.length} characters` };
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return { omitted: REDACTED };
  }
}
