import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";
import type { Schema } from "./schema.ts";

/**
 * A built-in object of which nothing is set, as Go writes it: a struct that is no pointer is there and empty. Owners of
 * fields are told from it when an object is created. The schema shows such members by a default.
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

function blankMember(member: Schema): JsonValue | undefined {
  const { default: value } = member;
  if (!isJsonObject(value)) return value;
  return member.properties === undefined ? null : blankObject(member);
}
