import { isJsonObject, parseJson, type JsonValue } from "@konverge/core";
import { sortManagers } from "../normalise.ts";

/** The texts that a server or the clock chooses, and their symbols. The order matters: one may contain another. */
const CHOSEN: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<uid>"],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, "<time>"],
  // As `describe` and `diff` print it.
  [/[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, "<time>"],
  [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}/g, "<time>"],
  // The start of a line of kubectl's log.
  [/^[EIW]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ /gm, ""],
  [/\/(LIVE|MERGED)-\d+\//g, "/$1/"],
  [/((resourceVersion|Resource Version)"?: *"?)\d+/gi, "$1<version>"],
  [/https?:\/\/(127\.0\.0\.1|localhost)(:\d+)?/g, "<server>"],
  [/\b10\.\d+\.\d+\.\d+\b/g, "<ip>"],
  [/(nodePort"?: |NodePort: +\S+ +|:)3[0-2]\d{3}(?=\/TCP|$|,)/gm, "$1<port>"],
  [/\b(\d+m)?\d+s\b/g, "<age>"],
  // Columns are as wide as their widest cell, which may be one of the above.
  [/(?<=\S) {2,}/g, "  "],
];

/** Replaces what differs between two servers (uids, times, versions, addresses, ages) by symbols. */
export function sameText(text: string, own: Readonly<Record<string, string>>): string {
  let result = withSortedManagers(text);
  for (const [symbol, value] of Object.entries(own)) {
    result = result.replaceAll(value, `<${symbol}>`);
  }
  for (const [pattern, symbol] of CHOSEN) result = result.replaceAll(pattern, symbol);
  return result.trimEnd();
}

/** Sorts the managedFields of a text that is JSON, or whose lines end with JSON. Their order depends on the clock. */
function withSortedManagers(text: string): string {
  if (!text.includes('"managedFields"')) return text;
  const inOrder = (json: string, indent?: number) =>
    JSON.stringify(parseJson(json), (key, value: JsonValue) => sorted(key, value), indent);
  if (text.startsWith("{")) return inOrder(text, 4);
  return text.replaceAll(
    /^([^{\n]*)(\{.*"managedFields".*\})$/gm,
    (_, label: string, json: string) => `${label}${inOrder(json)}`,
  );
}

function sorted(key: string, value: JsonValue): JsonValue {
  if (key !== "managedFields" || !Array.isArray(value)) return value;
  return sortManagers(value).filter(isJsonObject);
}
