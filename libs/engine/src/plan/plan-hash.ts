import { createHash } from "node:crypto";
import { isJsonObject, type JsonValue } from "@konverge/core";

/** Returns the SHA-256 of a JSON value. The order of its members does not matter. */
export function planHash(value: JsonValue): string {
  return createHash("sha256").update(canonical(value)).digest("hex");
}

function canonical(value: JsonValue): string {
  return JSON.stringify(value, (_, member: JsonValue) =>
    isJsonObject(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
