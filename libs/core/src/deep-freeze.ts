/** Freezes a JSON value deeply, so that an assignment to a shared object throws where it happens. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze<unknown>(member);
  return value;
}
