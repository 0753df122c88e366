/** Returns the JSON Pointer (RFC 6901) of a path. */
export function jsonPointer(path: readonly string[]): string {
  return path.map((part) => `/${escapePointer(part)}`).join("");
}

/** Escapes one part of a pointer. */
export function escapePointer(part: string): string {
  return /[~/]/.test(part) ? part.replaceAll("~", "~0").replaceAll("/", "~1") : part;
}
