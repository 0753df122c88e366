import { isJsonObject, jsonEquals, type JsonObject } from "@konverge/core";
import type { Preconditions } from "./change.ts";
import { parsePointer } from "./pointer.ts";
import { readAt } from "./update-at.ts";

/**
 * Returns the first precondition that an object does not meet, or undefined. The text names no value, which may be a secret.
 * @param object undefined if it does not exist
 */
export function findFailedPrecondition(
  object: JsonObject | undefined,
  { exists, generation, fields = [] }: Preconditions,
): string | undefined {
  if (exists === false && object !== undefined) return "the object exists";
  if (exists === true && object === undefined) return "the object does not exist";
  if (generation !== undefined) {
    const { metadata } = object ?? {};
    const found = isJsonObject(metadata) ? metadata["generation"] : undefined;
    if (found !== generation)
      return `the generation is ${String(found ?? "missing")}, not ${generation}`;
  }
  for (const condition of fields) {
    const { path } = condition;
    const value = readAt(object ?? {}, parsePointer(path) ?? []);
    if ("exists" in condition) {
      if ((value !== undefined) !== condition.exists) {
        return condition.exists ? `${path} does not exist` : `${path} exists`;
      }
    } else if (!jsonEquals(value ?? null, condition.value)) {
      return value === undefined ? `${path} does not exist` : `${path} has another value`;
    }
  }
  return undefined;
}
