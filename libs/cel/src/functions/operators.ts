import { compare, equals, indexOfSame } from "../values/equals.ts";
import {
  CelError,
  CelList,
  CelMap,
  Duration,
  Optional,
  Timestamp,
  Uint,
  type Value,
} from "../values/value.ts";
import { global, withWork, type Overload } from "./declaration.ts";

const MAX_INT = 9_223_372_036_854_775_807n;
const MIN_INT = -9_223_372_036_854_775_808n;
const MIN_TIMESTAMP = -62_135_596_800_000_000_000n;
const MAX_TIMESTAMP = 253_402_300_799_999_999_999n;

/** Longer lists exceed the real server's cost limit. */
const LONGEST_LIST = 1_000_000;
const LONGEST_TEXT = 10_000_000;

/** @throws CelError for a list that is too long to make */
export function checkLength(length: number): void {
  if (length > LONGEST_LIST) throw new CelError("operation cancelled: actual cost limit exceeded");
}

/** @throws CelError if the value has more than 64 bits */
export function checkInt(value: bigint, what = "integer overflow"): bigint {
  if (value > MAX_INT || value < MIN_INT) throw new CelError(what);
  return value;
}

export function checkTimestamp(nanos: bigint, offsetMinutes = 0): Timestamp {
  if (nanos < MIN_TIMESTAMP || nanos > MAX_TIMESTAMP) throw new CelError("timestamp overflow");
  return new Timestamp(nanos, offsetMinutes);
}

const duration = (nanos: bigint) => new Duration(checkInt(nanos, "duration overflow"));

function divide(left: bigint, right: bigint): bigint {
  if (right === 0n) throw new CelError("division by zero");
  return checkInt(left / right);
}

function modulo(left: bigint, right: bigint): bigint {
  if (right === 0n) throw new CelError("modulus by zero");
  // As in Go: the quotient of the smallest integer does not fit.
  if (right === -1n) checkInt(-left);
  return left % right;
}

/** Adds to a list; a set and a map of list type keep one item of each identity. */
function concat(left: CelList, right: CelList): CelList {
  checkLength(left.items.length + right.items.length);
  if (left.identity === undefined) return new CelList([...left.items, ...right.items]);
  const items = [...left.items];
  for (const item of right.items) {
    const place = indexOfSame(new CelList(items, left.identity), item);
    if (place === undefined) items.push(item);
    else if (left.identity.keys !== undefined) items[place] = item;
  }
  return new CelList(items, left.identity);
}

const arithmetic: readonly Overload[] = [
  global("_+_", "bytes, bytes -> bytes", (a: Uint8Array, b: Uint8Array) =>
    Uint8Array.from([...a, ...b]),
  ),
  global("_+_", "double, double -> double", (a: number, b: number) => a + b),
  global("_+_", "duration, duration -> duration", (a: Duration, b: Duration) =>
    duration(a.nanos + b.nanos),
  ),
  global("_+_", "duration, timestamp -> timestamp", (a: Duration, b: Timestamp) =>
    checkTimestamp(a.nanos + b.nanos, b.offsetMinutes),
  ),
  global("_+_", "timestamp, duration -> timestamp", (a: Timestamp, b: Duration) =>
    checkTimestamp(a.nanos + b.nanos, a.offsetMinutes),
  ),
  global("_+_", "int, int -> int", (a: bigint, b: bigint) => checkInt(a + b)),
  global("_+_", "list(A), list(A) -> list(A)", concat),
  global("_+_", "string, string -> string", (a: string, b: string) => {
    if (a.length + b.length > LONGEST_TEXT) {
      throw new CelError("operation cancelled: actual cost limit exceeded");
    }
    return a + b;
  }),
  global("_+_", "uint, uint -> uint", (a: Uint, b: Uint) => new Uint(a.value + b.value)),
  global("_/_", "double, double -> double", (a: number, b: number) => a / b),
  global("_/_", "int, int -> int", divide),
  global("_/_", "uint, uint -> uint", (a: Uint, b: Uint) => new Uint(divide(a.value, b.value))),
  global("_%_", "int, int -> int", modulo),
  global("_%_", "uint, uint -> uint", (a: Uint, b: Uint) => new Uint(modulo(a.value, b.value))),
  global("_*_", "double, double -> double", (a: number, b: number) => a * b),
  global("_*_", "int, int -> int", (a: bigint, b: bigint) => checkInt(a * b)),
  global("_*_", "uint, uint -> uint", (a: Uint, b: Uint) => new Uint(a.value * b.value)),
  global("-_", "double -> double", (a: number) => -a),
  global("-_", "int -> int", (a: bigint) => checkInt(-a)),
  global("_-_", "double, double -> double", (a: number, b: number) => a - b),
  global("_-_", "duration, duration -> duration", (a: Duration, b: Duration) =>
    duration(a.nanos - b.nanos),
  ),
  global("_-_", "int, int -> int", (a: bigint, b: bigint) => checkInt(a - b)),
  global("_-_", "timestamp, duration -> timestamp", (a: Timestamp, b: Duration) =>
    checkTimestamp(a.nanos - b.nanos, a.offsetMinutes),
  ),
  global("_-_", "timestamp, timestamp -> duration", (a: Timestamp, b: Timestamp) =>
    duration(a.nanos - b.nanos),
  ),
  global("_-_", "uint, uint -> uint", (a: Uint, b: Uint) => new Uint(a.value - b.value)),
];

const ORDERED = [
  ...["bool", "string", "bytes", "timestamp", "duration"].map((type) => [type, type]),
  ...["int", "uint", "double"].flatMap((left) =>
    ["int", "uint", "double"].map((right) => [left, right]),
  ),
];
const RELATIONS: Readonly<Record<string, (order: number) => boolean>> = {
  "_<_": (order) => order < 0,
  "_<=_": (order) => order <= 0,
  "_>_": (order) => order > 0,
  "_>=_": (order) => order >= 0,
};

const relations: readonly Overload[] = Object.entries(RELATIONS).flatMap(([name, holds]) =>
  ORDERED.map(([left, right]) =>
    global(name, `${left}, ${right} -> bool`, (a: Value, b: Value) => holds(compare(a, b))),
  ),
);

/** Returns the position in a list, for an integer of any numeric type. */
function positionOf(key: Value): bigint {
  if (typeof key === "bigint") return key;
  if (key instanceof Uint) return key.value;
  if (typeof key === "number" && Number.isInteger(key)) return BigInt(key);
  throw new CelError(`unsupported index value in list: ${showKey(key)}`);
}

/** Returns an item of a list or a member of a map, or undefined. */
function find(from: Value, key: Value): Value | undefined {
  if (from instanceof CelList) {
    const position = positionOf(key);
    return position < 0n ? undefined : from.items[Number(position)];
  }
  return from instanceof CelMap ? from.get(key) : undefined;
}

/** @throws CelError if there is no such item or member */
function index(from: Value, key: Value): Value {
  const found = find(from, key);
  if (found !== undefined) return found;
  const what = from instanceof CelList ? "index out of bounds" : "no such key";
  throw new CelError(`${what}: ${showKey(key)}`);
}

function showKey(key: Value): string {
  return key instanceof Uint ? String(key.value) : String(key);
}

const lookUps: readonly Overload[] = [
  global("_[_]", "list(A), int -> A", index),
  global("_[_]", "map(A, B), A -> B", index),
  global("_[_]", "optional(list(A)), int -> optional(A)", indexOptional),
  global("_[_]", "optional(map(A, B)), A -> optional(B)", indexOptional),
  global("_[?_]", "list(A), int -> optional(A)", (a: Value, b: Value) => new Optional(find(a, b))),
  global("_[?_]", "optional(list(A)), int -> optional(A)", indexOptional),
  global("_[?_]", "map(A, B), A -> optional(B)", (a: Value, b: Value) => new Optional(find(a, b))),
  global("_[?_]", "optional(map(A, B)), A -> optional(B)", indexOptional),
  ...withWork(
    (_item: Value, list: CelList) => list.items.length,
    [
      global("@in", "A, list(A) -> bool", (item: Value, list: CelList) =>
        list.items.some((one) => equals(one, item)),
      ),
    ],
  ),
  global("@in", "A, map(A, B) -> bool", (key: Value, map: CelMap) => map.get(key) !== undefined),
];

function indexOptional({ value }: Optional, key: Value): Optional {
  return value === undefined ? new Optional() : new Optional(find(value, key));
}

export const OPERATORS: readonly Overload[] = [
  global("_?_:_", "bool, A, A -> A", (condition: boolean, a: Value, b: Value) =>
    condition ? a : b,
  ),
  global("!_", "bool -> bool", (a: boolean) => !a),
  global("_==_", "A, A -> bool", equals),
  global("_!=_", "A, A -> bool", (a: Value, b: Value) => !equals(a, b)),
  ...arithmetic,
  ...relations,
  ...lookUps,
];
