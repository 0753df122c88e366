/** A field that a write has set, or removed with null. */
export interface Change {
  /** Path such as `spec.replicas`. Lists are written as a whole. */
  readonly path: string;
  readonly value: unknown;
}

/** Returns the leaves of a merge patch. */
export function changesOf(patch: Readonly<Record<string, unknown>> | undefined): Change[] {
  return patch === undefined ? [] : leavesOf(patch, "");
}

function leavesOf(node: object, prefix: string): Change[] {
  return Object.entries(node).flatMap(([name, value]: [string, unknown]) => {
    const path = prefix === "" ? name : `${prefix}.${name}`;
    const isNested =
      typeof value === "object" &&
      value !== null &&
      !Array.isArray(value) &&
      Object.keys(value).length > 0;
    return isNested ? leavesOf(value, path) : [{ path, value }];
  });
}
