import { isJsonObject, isRawNumber, type JsonValue } from "@konverge/core";

/** Formats a value like Go's `%+v` of a decoded JSON document: `map[a:[1 2]]`, with sorted keys. */
export function formatGo(value: JsonValue): string {
  if (value === null) return "<nil>";
  if (isRawNumber(value)) return value.rawJSON;
  if (Array.isArray(value)) return `[${value.map(formatGo).join(" ")}]`;
  if (!isJsonObject(value)) return String(value);
  const members = Object.keys(value)
    .toSorted()
    .map((key) => `${key}:${formatGo(value[key] ?? null)}`);
  return `map[${members.join(" ")}]`;
}
