import { jsonEquals } from "@konverge/core";
import {
  CelError,
  CelList,
  CelMap,
  Duration,
  Opaque,
  Optional,
  Timestamp,
  TypeValue,
  Uint,
  type Value,
} from "./value.ts";

/** Compares two values of any types. Numbers are equal across types. */
export function equals(left: Value, right: Value): boolean {
  if (isNumeric(left) && isNumeric(right)) return compareNumbers(left, right) === 0;
  if (left instanceof CelList) return right instanceof CelList && listEquals(left, right);
  if (left instanceof CelMap) return right instanceof CelMap && mapEquals(left, right);
  if (left instanceof Uint8Array) {
    return right instanceof Uint8Array && Buffer.compare(left, right) === 0;
  }
  if (left instanceof Timestamp) return right instanceof Timestamp && left.nanos === right.nanos;
  if (left instanceof Duration) return right instanceof Duration && left.nanos === right.nanos;
  if (left instanceof TypeValue) return right instanceof TypeValue && left.type === right.type;
  if (left instanceof Optional) {
    if (!(right instanceof Optional)) return false;
    if (left.value === undefined || right.value === undefined) return left.value === right.value;
    return equals(left.value, right.value);
  }
  if (left instanceof Opaque) {
    return (
      right instanceof Opaque && left.type === right.type && jsonEquals(left.content, right.content)
    );
  }
  return left === right;
}

function listEquals(left: CelList, right: CelList): boolean {
  if (left.items.length !== right.items.length) return false;
  const { identity } = left;
  if (identity === undefined) {
    return left.items.every((item, index) => equals(item, right.items[index] ?? null));
  }
  return right.items.every((item) => {
    const place = indexOfSame(left, item);
    return place !== undefined && equals(left.items[place] ?? null, item);
  });
}

/** Finds the item of a set that equals a value, or of a map with the same keys. */
export function indexOfSame({ items, identity }: CelList, wanted: Value): number | undefined {
  const keys = identity?.keys;
  const isSame = (item: Value) =>
    keys === undefined
      ? equals(item, wanted)
      : item instanceof CelMap &&
        wanted instanceof CelMap &&
        keys.every((key) => equals(item.get(key) ?? null, wanted.get(key) ?? null));
  const index = items.findIndex(isSame);
  return index === -1 ? undefined : index;
}

function mapEquals(left: CelMap, right: CelMap): boolean {
  if (left.size !== right.size) return false;
  for (const [key, value] of left.entries()) {
    const other = right.get(key);
    if (other === undefined || !equals(value, other)) return false;
  }
  for (const [key, value] of left.unknown) {
    const other = right.unknown.get(key);
    if (other !== undefined && !jsonEquals(value, other)) return false;
  }
  return true;
}

const isNumeric = (value: Value): value is bigint | number | Uint =>
  typeof value === "bigint" || typeof value === "number" || value instanceof Uint;

function compareNumbers(left: bigint | number | Uint, right: bigint | number | Uint): number {
  const [a, b] = [left, right].map((value) => (value instanceof Uint ? value.value : value));
  if (a === undefined || b === undefined || Number.isNaN(a) || Number.isNaN(b)) return Number.NaN;
  if (a < b) return -1;
  return a > b ? 1 : 0;
}

/** Orders two values: negative, zero or positive. @throws CelError if they have no order */
export function compare(left: Value, right: Value): number {
  if (isNumeric(left) && isNumeric(right)) {
    const order = compareNumbers(left, right);
    if (Number.isNaN(order)) throw new CelError("NaN values cannot be ordered");
    return order;
  }
  if (typeof left === "string" && typeof right === "string") {
    return Buffer.compare(Buffer.from(left), Buffer.from(right));
  }
  if (typeof left === "boolean" && typeof right === "boolean") return Number(left) - Number(right);
  if (left instanceof Uint8Array && right instanceof Uint8Array) return Buffer.compare(left, right);
  const isTime =
    (left instanceof Timestamp && right instanceof Timestamp) ||
    (left instanceof Duration && right instanceof Duration);
  if (isTime) return left.nanos < right.nanos ? -1 : Number(left.nanos > right.nanos);
  throw new CelError("no such overload");
}
