import { compare, equals } from "../values/equals.ts";
import { CelError, CelList, Duration, typeNameOf, Uint, type Value } from "../values/value.ts";
import { checkInt, checkLength } from "./operators.ts";
import { global, member, withWork, type Overload } from "./declaration.ts";

const COMPARABLE = "int uint double bool duration timestamp string bytes".split(" ");
const SUMS: Readonly<Record<string, readonly [Value, (a: never, b: never) => Value]>> = {
  int: [0n, (a: bigint, b: bigint) => checkInt(a + b)],
  uint: [new Uint(0n), (a: Uint, b: Uint) => new Uint(a.value + b.value)],
  double: [0, (a: number, b: number) => a + b],
  duration: [new Duration(0n), (a: Duration, b: Duration) => new Duration(a.nanos + b.nanos)],
};

function isSorted({ items }: CelList): boolean {
  return items.every((item, index) => index === 0 || compare(items[index - 1] ?? null, item) <= 0);
}

function extreme(name: string, { items }: CelList, sign: number): Value {
  if (items.length === 0) throw new CelError(`${name} called on empty list`);
  return items.reduce((best, item) => (compare(item, best) * sign > 0 ? item : best));
}

function indexIn({ items }: CelList, wanted: Value): bigint {
  return BigInt(items.findIndex((item) => equals(item, wanted)));
}

function lastIndexIn({ items }: CelList, wanted: Value): bigint {
  return BigInt(items.findLastIndex((item) => equals(item, wanted)));
}

function slice({ items }: CelList, start: bigint, end: bigint): CelList {
  const refuse = (why: string) => new CelError(`cannot slice(${start}, ${end}), ${why}`);
  if (start < 0n || end < 0n) throw refuse("negative indexes not supported");
  if (start > end) throw refuse("start index must be less than or equal to end index");
  if (end > items.length) throw refuse(`list is length ${items.length}`);
  return new CelList(items.slice(Number(start), Number(end)));
}

function flatten({ items }: CelList, depth: bigint): CelList {
  if (depth < 0n) throw new CelError("level must be non-negative");
  if (depth > 0n) {
    checkLength(
      items.reduce<number>((sum, one) => sum + (one instanceof CelList ? one.items.length : 1), 0),
    );
  }
  return new CelList(
    items.flatMap((item) =>
      item instanceof CelList && depth > 0n ? flatten(item, depth - 1n).items : [item],
    ),
  );
}

/** Sorts a list by keys of its items. @throws CelError for keys of different types */
export function sortByKeys({ items }: CelList, keys: readonly Value[]): CelList {
  const type = typeNameOf(keys[0] ?? null);
  if (keys.some((key) => typeNameOf(key) !== type)) {
    throw new CelError("list elements must have the same type");
  }
  const order = keys.map((_key, index) => index);
  order.sort((a, b) => compare(keys[a] ?? null, keys[b] ?? null));
  return new CelList(order.map((index) => items[index] ?? null));
}

function distinct({ items }: CelList): CelList {
  return new CelList(
    items.filter((item, index) => items.findIndex((one) => equals(one, item)) === index),
  );
}

function range(count: bigint): CelList {
  checkLength(Number(count));
  return new CelList(
    Array.from({ length: Math.max(0, Number(count)) }, (_, index) => BigInt(index)),
  );
}

const containsAll = (list: CelList, wanted: CelList) =>
  wanted.items.every((item) => list.items.some((one) => equals(one, item)));

const lengthOf = ({ items }: CelList) => items.length;
const pairsOf = (a: CelList, b: CelList = a) => a.items.length * b.items.length;

const AGGREGATES: readonly Overload[] = [
  ...COMPARABLE.flatMap((type) => [
    member("isSorted", `list(${type}) -> bool`, isSorted),
    member("max", `list(${type}) -> ${type}`, (list: CelList) => extreme("max", list, 1)),
    member("min", `list(${type}) -> ${type}`, (list: CelList) => extreme("min", list, -1)),
    member("sort", `list(${type}) -> list(${type})`, (list: CelList) =>
      sortByKeys(list, list.items),
    ),
  ]),
  ...Object.entries(SUMS).map(([type, [zero, add]]) =>
    member("sum", `list(${type}) -> ${type}`, ({ items }: CelList) =>
      items.reduce(add as (a: Value, b: Value) => Value, zero),
    ),
  ),
];

export const LISTS: readonly Overload[] = [
  ...withWork(lengthOf, [
    ...AGGREGATES,
    member("indexOf", "list(A), A -> int", indexIn),
    member("lastIndexOf", "list(A), A -> int", lastIndexIn),
  ]),
  member("slice", "list(A), int, int -> list(A)", slice),
  member("flatten", "list(list(A)) -> list(A)", (list: CelList) => flatten(list, 1n)),
  member("flatten", "list(dyn), int -> list(dyn)", flatten),
  member("reverse", "list(A) -> list(A)", ({ items }: CelList) => new CelList(items.toReversed())),
  global("lists.range", "int -> list(int)", range),
  ...withWork(pairsOf, [
    member("distinct", "list(A) -> list(A)", distinct),
    global("sets.contains", "list(A), list(A) -> bool", containsAll),
    global(
      "sets.equivalent",
      "list(A), list(A) -> bool",
      (a: CelList, b: CelList) => containsAll(a, b) && containsAll(b, a),
    ),
    global("sets.intersects", "list(A), list(A) -> bool", (a: CelList, b: CelList) =>
      a.items.some((item) => b.items.some((one) => equals(one, item))),
    ),
  ]),
];
