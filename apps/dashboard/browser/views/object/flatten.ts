interface Field {
  readonly path: string;
  readonly value: unknown;
}

/** Returns the leaves of a merge patch. Lists are leaves, because a patch replaces them as a whole. */
export function flatten(patch: Readonly<Record<string, unknown>>, above = ""): Field[] {
  return Object.entries(patch).flatMap(([name, value]) => {
    const path = above === "" ? name : `${above}.${name}`;
    const isBranch = typeof value === "object" && value !== null && !Array.isArray(value);
    if (isBranch && Object.keys(value).length > 0) {
      return flatten(value as Readonly<Record<string, unknown>>, path);
    }
    return [{ path, value }];
  });
}
