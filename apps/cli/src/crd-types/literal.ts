import { isJsonObject, type JsonValue } from "@konverge/core";

const WIDTH = 100;
const STEP = "  ";

/** Returns the name of a member as a key of an object literal or type. */
export function keyOf(name: string): string {
  // In a literal this name sets the prototype, unless it is computed.
  if (name === "__proto__") return '["__proto__"]';
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

/** Returns a literal of a JSON value, in one line if it fits. */
export function literalOf(value: JsonValue, indent: string): string {
  const line = lineOf(value);
  if (indent.length + line.length <= WIDTH - 20) return line;
  const inner = `${indent}${STEP}`;
  if (Array.isArray(value) && value.length > 0) {
    return `[\n${value.map((item) => `${inner}${literalOf(item, inner)},\n`).join("")}${indent}]`;
  }
  if (!isJsonObject(value) || Object.keys(value).length === 0) return line;
  const members = Object.entries(value).map(
    ([name, member]) => `${inner}${keyOf(name)}: ${literalOf(member, inner)},\n`,
  );
  return `{\n${members.join("")}${indent}}`;
}

function lineOf(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(lineOf).join(", ")}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${keyOf(name)}: ${lineOf(member)}`,
  );
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}
