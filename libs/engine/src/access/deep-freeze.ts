import type { JsonValue } from "@konverge/core";

/** Freezes in depth, so that changing what was read throws at the place of the mistake. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value as Record<string, JsonValue>)) deepFreeze(member);
  return value;
}
