import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";
import type { Schema } from "./schema.ts";

/**
 * Returns a built-in object without any set field, as Go writes it: a struct that is not a pointer is present and
 * empty. Field owners are computed against it when an object is created. In the schema such members have a default.
 */
export function blankObject(schema: Schema): JsonObject {
  const blank: JsonObject = {};
  for (const [key, member] of Object.entries(schema.properties ?? {})) {
    const value = blankMember(member);
    if (value !== undefined) blank[key] = value;
    else if (schema.required?.includes(key) === true) blank[key] = null;
  }
  return blank;
}

/** Returns an unset member as Go writes it; undefined if Go omits it. */
export function blankMember(member: Schema): JsonValue | undefined {
  const { default: value } = member;
  if (!isJsonObject(value)) return value;
  return member.properties === undefined ? null : blankObject(member);
}
