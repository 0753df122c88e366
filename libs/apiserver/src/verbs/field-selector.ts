import { badRequest } from "../errors/status-error.ts";

/** One condition of a field selector. */
export interface FieldRequirement {
  readonly field: string;
  readonly isNegated: boolean;
  readonly value: string;
}

/** Terms without their separators; a backslash escapes the next character. */
const TERM = /(?:\\[\s\S]?|[^\\,])+/g;

/** Parses a field selector of a query, as apimachinery's `fields.ParseSelector` does. @throws StatusError 400 */
export function parseFieldSelector(text: string): FieldRequirement[] {
  return (text.match(TERM) ?? []).map((term) => {
    const [, field, operator, value = ""] = /^([^]*?)(!=|==|=)([^]*)$/.exec(term) ?? [];
    if (field === undefined) {
      throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
    }
    return { field, isNegated: operator === "!=", value: unescape(value) };
  });
}

function unescape(value: string): string {
  return value.replaceAll(/\\([^]?)|=/gu, (part, escaped: string | undefined) => {
    if (part === "=") throw invalid(`unescaped character in value: ${part.charCodeAt(0)}`);
    if (escaped === undefined || !/^[\\,=]$/.test(escaped)) {
      throw invalid(`invalid escape sequence: ${part}`);
    }
    return escaped;
  });
}

const invalid = (why: string) => badRequest(`invalid field selector: ${why}`);
