/** What `get` has answered of kinds that hold secrets, with all that is in it. */
const secrets = new WeakSet<object>();

export function rememberSecret(value: object): void {
  secrets.add(value);
  for (const member of Object.values(value)) {
    if (typeof member === "object" && member !== null) rememberSecret(member);
  }
}

/** True for what must not be recorded (P12). */
export function isSecret(value: object): boolean {
  return secrets.has(value);
}
