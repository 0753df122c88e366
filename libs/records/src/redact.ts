import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";

/** Kinds whose whole content is secret: only the paths of their fields may be stored. */
const SENSITIVE = new Set(["secrets.", "secrets"]);
const MAX_TEXT = 200;
const MAX_ENTRIES = 30;
const REDACTED = "(redacted)";

/** True if the values of a resource (`plural.group`) must never leave the handler (P12). */
export function isSensitive(resource: string): boolean {
  return SENSITIVE.has(resource);
}

/**
 * Redacts a patch for storage: replaces the values of sensitive kinds, truncates strings at 200 characters, and lists and objects
 * at 30 members. The only place that prepares values for Redis, logs and pages.
 */
export function redactPatch(resource: string, patch: JsonObject): JsonObject {
  const shorten = isSensitive(resource) ? hide : cut;
  return shorten(patch) as JsonObject;
}

function hide(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return value === null ? null : REDACTED;
  return mapMembers(value, hide);
}

function cut(value: JsonValue): JsonValue {
  if (typeof value === "string" && value.length > MAX_TEXT) {
    return `${value.slice(0, MAX_TEXT)}... (${value.length} characters)`;
  }
  if (Array.isArray(value)) {
    const kept = value.slice(0, MAX_ENTRIES).map(cut);
    return value.length > MAX_ENTRIES ? [...kept, `... (${value.length} entries)`] : kept;
  }
  return isJsonObject(value) ? mapMembers(value, cut) : value;
}

function mapMembers(object: JsonObject, map: (value: JsonValue) => JsonValue): JsonObject {
  const entries = Object.entries(object);
  const kept = entries
    .slice(0, MAX_ENTRIES)
    .map(([key, value]): [string, JsonValue] => [key, map(value)]);
  if (entries.length > MAX_ENTRIES) kept.push(["...", `(${entries.length} members)`]);
  return Object.fromEntries(kept);
}
