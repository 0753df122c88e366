/** Returns the segments of a JSON Pointer (RFC 6901), or undefined if the text is not one. */
export function parsePointer(path: string): readonly string[] | undefined {
  if (path === "") return [];
  if (!path.startsWith("/") || /~(?![01])/.test(path)) return undefined;
  return path
    .slice(1)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The inverse of {@link parsePointer}. */
export function formatPointer(segments: readonly string[]): string {
  return segments
    .map((segment) => `/${segment.replaceAll("~", "~0").replaceAll("/", "~1")}`)
    .join("");
}

/** True if `path` is `base` or lies below it. */
export function isWithin(base: readonly string[], path: readonly string[]): boolean {
  return base.every((segment, at) => path[at] === segment);
}

/** Returns a list index below `length`, or undefined. */
export function indexOf(segment: string, length: number): number | undefined {
  const index = /^(0|[1-9]\d{0,8})$/.test(segment) ? Number(segment) : length;
  return index < length ? index : undefined;
}
