import type { JsonValue } from "@konverge/core";

/** A value of CEL. An int is a bigint, a double a number. */
export type Value =
  | bigint
  | boolean
  | number
  | string
  | Uint8Array
  | CelList
  | CelMap
  | Duration
  | Opaque
  | Optional
  | Timestamp
  | TypeValue
  | Uint
  | null;

/** An error of an evaluation, with cel-go's text. */
export class CelError extends Error {
  override readonly name = "CelError";
}

export class Uint {
  readonly value: bigint;
  constructor(value: bigint) {
    if (value < 0n || value > 18_446_744_073_709_551_615n) {
      throw new CelError("unsigned integer overflow");
    }
    this.value = value;
  }
}

/** Nanoseconds since 1970, and the offset of the zone in which it is written. */
export class Timestamp {
  readonly nanos: bigint;
  readonly offsetMinutes: number;
  constructor(nanos: bigint, offsetMinutes = 0) {
    this.nanos = nanos;
    this.offsetMinutes = offsetMinutes;
  }
}

/** Nanoseconds. */
export class Duration {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class TypeValue {
  readonly type: string;
  constructor(type: string) {
    this.type = type;
  }
}

export class Optional {
  readonly value: Value | undefined;
  constructor(value?: Value) {
    this.value = value;
  }
}

/** A value of a library, for example a quantity. */
export class Opaque<Content = unknown> {
  readonly type: string;
  readonly content: Content;
  constructor(type: string, content: Content) {
    this.type = type;
    this.content = content;
  }
}

/** Compares lists of type `set` and `map` regardless of order. */
export interface ListIdentity {
  /** The identity of an item of a `map`; absent for a `set`. */
  readonly keys?: readonly string[];
}

export class CelList {
  readonly items: readonly Value[];
  /** Absent: the order counts. */
  readonly identity: ListIdentity | undefined;
  constructor(items: readonly Value[], identity?: ListIdentity) {
    this.items = items;
    this.identity = identity;
  }
}

export type MapKey = bigint | boolean | string | Uint;

export class CelMap {
  readonly #entries = new Map<string, readonly [MapKey, Value]>();
  /** Fields of an object that the schema does not declare. They count only in comparisons. */
  readonly unknown: ReadonlyMap<string, JsonValue>;
  /** Number of members including unknown and null ones. */
  readonly size: number;
  constructor(
    entries: Iterable<readonly [MapKey, Value]>,
    unknown: ReadonlyMap<string, JsonValue> = new Map(),
    size?: number,
  ) {
    for (const entry of entries) this.#entries.set(keyText(entry[0]), entry);
    this.unknown = unknown;
    this.size = size ?? this.#entries.size;
  }

  get(key: Value): Value | undefined {
    const text = keyText(key);
    return text === undefined ? undefined : this.#entries.get(text)?.[1];
  }

  entries(): (readonly [MapKey, Value])[] {
    return [...this.#entries.values()];
  }
}

/** Numbers of equal value are the same key. */
function keyText(key: MapKey): string;
function keyText(key: Value): string | undefined;
function keyText(key: Value): string | undefined {
  if (typeof key === "string") return `s${key}`;
  if (typeof key === "bigint") return `n${key}`;
  if (typeof key === "boolean") return `b${key}`;
  if (key instanceof Uint) return `n${key.value}`;
  return typeof key === "number" && Number.isInteger(key) ? `n${BigInt(key)}` : undefined;
}

/** Returns the name of a value's type, as `type()` and error messages show it. */
export function typeNameOf(value: Value): string {
  if (value === null) return "null_type";
  if (typeof value === "bigint") return "int";
  if (typeof value === "number") return "double";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "string") return "string";
  if (value instanceof Uint) return "uint";
  if (value instanceof Uint8Array) return "bytes";
  if (value instanceof CelList) return "list";
  if (value instanceof CelMap) return "map";
  if (value instanceof Timestamp) return "google.protobuf.Timestamp";
  if (value instanceof Duration) return "google.protobuf.Duration";
  if (value instanceof Optional) return "optional_type";
  return value instanceof TypeValue ? "type" : value.type;
}
