import { isJsonObject, jsonEquals, type JsonValue } from "@konverge/core";

/** A difference between the responses of two servers. */
export interface Difference {
  readonly case: string;
  /** The step, and the path in its response. */
  readonly path: string;
  /** Undefined: absent. */
  readonly embedded: JsonValue | undefined;
  readonly real: JsonValue | undefined;
}

/** Finds the innermost differences between two values. */
export function findDifferences(
  left: JsonValue | undefined,
  right: JsonValue | undefined,
  path: string,
): {
  readonly path: string;
  readonly left: JsonValue | undefined;
  readonly right: JsonValue | undefined;
}[] {
  if (jsonEquals(left, right)) return [];
  if (isJsonObject(left) && isJsonObject(right)) {
    return [...new Set([...Object.keys(left), ...Object.keys(right)])].flatMap((key) =>
      findDifferences(left[key], right[key], `${path}.${key}`),
    );
  }
  if (Array.isArray(left) && Array.isArray(right) && left.length === right.length) {
    return left.flatMap((item, index) => findDifferences(item, right[index], `${path}[${index}]`));
  }
  return [{ path, left, right }];
}
