/** What bodies have seen of kinds that hold secrets, with all that is in it. */
const secrets = new WeakSet<object>();

export function rememberSecret(value: object): void {
  // A draft may hold a cycle.
  if (secrets.has(value)) return;
  secrets.add(value);
  for (const member of Object.values(value)) {
    if (typeof member === "object" && member !== null) rememberSecret(member);
  }
}

/** True for what must not be recorded (P12). */
export function isSecret(value: object): boolean {
  return secrets.has(value);
}
