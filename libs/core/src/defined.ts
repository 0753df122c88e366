/** The fields of T that are not `undefined`. */
export type Defined<T> = { [Field in keyof T]?: Exclude<T[Field], undefined> };

/**
 * Returns the fields that are not `undefined`, for spreading into an object with optional fields:
 * `exactOptionalPropertyTypes` distinguishes a missing field from one that is `undefined`.
 */
export function defined<T extends object>(fields: T): Defined<T> {
  const kept: Partial<T> = {};
  for (const name in fields) {
    if (fields[name] !== undefined) kept[name] = fields[name];
  }
  return kept as Defined<T>;
}
