import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";

/** Returns a copy whose members are sorted at every depth, as Go writes a map. */
export function sortMembers(object: JsonObject): JsonObject {
  const keys = Object.keys(object).toSorted();
  return Object.fromEntries(keys.map((key) => [key, sortedValue(object[key] ?? null)]));
}

function sortedValue(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sortedValue);
  return isJsonObject(value) ? sortMembers(value) : value;
}
