/** Any JSON value. Integers beyond 2^53 are {@link RawNumber}s. */
export type JsonValue = null | boolean | number | string | RawNumber | JsonValue[] | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue;
}
/**
 * A number that a double cannot represent, kept as its source text (`JSON.rawJSON`). Frozen. Arithmetic on it is wrong; use
 * `BigInt(value.rawJSON)`.
 */
export interface RawNumber {
  readonly rawJSON: string;
}

// TypeScript 7.0 lacks JSON.rawJSON and the reviver's third argument (ES2026, in Node since 21).
interface SourceTextJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
}
const sourceTextJson = JSON as unknown as SourceTextJson;

// A reviver costs five times a plain parse, so the text is searched for a long number first.
const MAYBE_UNSAFE = /(?:^|[:[,\s])-?\d{16}/;
const INTEGER = /^-?\d+$/;

/**
 * Parses JSON without losing digits: an integer outside +-2^53 becomes a {@link RawNumber}.
 * @throws SyntaxError like `JSON.parse`.
 */
export function parseJson(text: string): JsonValue {
  if (!MAYBE_UNSAFE.test(text)) return JSON.parse(text) as JsonValue;
  return sourceTextJson.parse(text, (_key, value, { source }) =>
    typeof value === "number" &&
    !Number.isSafeInteger(value) &&
    source !== undefined &&
    INTEGER.test(source)
      ? sourceTextJson.rawJSON(source)
      : value,
  ) as JsonValue;
}

/** Returns true for a number that is kept as text. */
export function isRawNumber(value: unknown): value is RawNumber {
  return sourceTextJson.isRawJSON(value);
}

/** Returns true for a JSON object: not an array, null or a {@link RawNumber}. */
export function isJsonObject(value: unknown): value is JsonObject {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !isRawNumber(value)
  );
}

/** Returns a deep copy that keeps raw numbers; `structuredClone` throws on them. */
export function cloneJson<T>(value: T): T {
  if (Array.isArray(value)) return value.map(cloneJson) as T;
  if (!isJsonObject(value)) return value;
  const copy: JsonObject = {};
  for (const [key, entry] of Object.entries(value)) {
    if (entry !== undefined) setOwn(copy, key, cloneJson(entry));
  }
  return copy as T;
}

/** Compares JSON values deeply. Ignores member order; an `undefined` member counts as absent. */
export function jsonEquals(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object") return false;
  if (left === null || right === null) return false;
  if (isRawNumber(left) || isRawNumber(right)) {
    return isRawNumber(left) && isRawNumber(right) && left.rawJSON === right.rawJSON;
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    return (
      left.length === right.length && left.every((entry, index) => jsonEquals(entry, right[index]))
    );
  }
  if (!isJsonObject(left) || !isJsonObject(right)) return false;
  // Counting avoids building sets: every mutation compares whole objects.
  let unmatched = 0;
  for (const key of Object.keys(left)) {
    const value = left[key];
    if (value === undefined) continue;
    if (!jsonEquals(value, getOwn(right, key))) return false;
    unmatched += 1;
  }
  for (const key of Object.keys(right)) {
    if (right[key] !== undefined) unmatched -= 1;
  }
  return unmatched === 0;
}

/** Reads an own member, so `constructor` of a label map is absent. */
export function getOwn(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Sets a member, also one named `__proto__`, which plain assignment would ignore. */
export function setOwn(object: JsonObject, key: string, value: JsonValue): void {
  if (key === "__proto__") {
    Object.defineProperty(object, key, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  } else {
    object[key] = value;
  }
}
