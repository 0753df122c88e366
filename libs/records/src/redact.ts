import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";

/** Kinds whose content is secret as a whole: of their fields nothing but the paths may be kept. */
const SENSITIVE = new Set(["secrets.", "secrets"]);
const MAX_TEXT = 200;
const MAX_ENTRIES = 30;
const REDACTED = "(redacted)";

/** True for a resource (`plural.group`) whose values must never leave the handler (P12). */
export function isSensitive(resource: string): boolean {
  return SENSITIVE.has(resource);
}

/**
 * A patch as it may be kept: the values of sensitive kinds replaced, texts cut at 200 characters, lists and objects at 30
 * members. The one place where values are made fit for Redis, logs and pages.
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
