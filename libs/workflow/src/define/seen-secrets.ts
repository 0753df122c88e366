/** Objects of sensitive kinds that bodies have read or written, with all nested objects. */
const secrets = new WeakSet<object>();

export function rememberSecret(value: object): void {
  // A draft may be circular.
  if (secrets.has(value)) return;
  secrets.add(value);
  for (const member of Object.values(value)) {
    if (typeof member === "object" && member !== null) rememberSecret(member);
  }
}

/** True for values that must not be recorded (P12). */
export function isSecret(value: object): boolean {
  return secrets.has(value);
}
