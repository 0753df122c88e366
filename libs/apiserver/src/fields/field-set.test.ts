import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  difference,
  differenceDeep,
  fieldSetOf,
  fromFieldsV1,
  intersection,
  listPaths,
  toFieldsV1,
  union,
} from "./field-set.ts";

const element = fc.constantFrom("f:a", "f:b", 'k:{"name":"x"}', 'v:"y"');
const paths = fc.array(fc.array(element, { minLength: 1, maxLength: 4 }), { maxLength: 12 });
const key = (path: readonly string[]) => path.join("\n");
/** Reference implementation on plain lists of paths. */
const sorted = (list: readonly (readonly string[])[]) =>
  listPaths(fieldSetOf([...new Map(list.map((path) => [key(path), path])).values()]));

test("union, difference and intersection match those of sets of paths", () => {
  fc.assert(
    fc.property(paths, paths, (left, right) => {
      const [a, b] = [fieldSetOf(left), fieldSetOf(right)];
      const inRight = new Set(right.map(key));
      expect(listPaths(union(a, b))).toEqual(sorted([...left, ...right]));
      expect(listPaths(difference(a, b))).toEqual(
        sorted(left.filter((path) => !inRight.has(key(path)))),
      );
      expect(listPaths(intersection(a, b))).toEqual(
        sorted(left.filter((path) => inRight.has(key(path)))),
      );
    }),
  );
});
test("the deep difference also drops paths below", () => {
  fc.assert(
    fc.property(paths, paths, (left, right) => {
      const isBelow = (path: readonly string[]) =>
        right.some((prefix) => key(path.slice(0, prefix.length)) === key(prefix));
      expect(listPaths(differenceDeep(fieldSetOf(left), fieldSetOf(right)))).toEqual(
        sorted(left.filter((path) => !isBelow(path))),
      );
    }),
  );
});
test("FieldsV1 keeps every path", () => {
  fc.assert(
    fc.property(paths, (list) => {
      const text = JSON.stringify(toFieldsV1(fieldSetOf(list)));
      expect(listPaths(fromFieldsV1(JSON.parse(text)))).toEqual(sorted(list));
    }),
  );
});
test("formats paths like the real server", () => {
  const set = fieldSetOf([
    ["f:spec", "f:containers", 'k:{"name":"web","port":80}', "f:image"],
    ["f:metadata", "f:finalizers", 'v:"a/b"'],
  ]);
  expect(listPaths(set)).toEqual([
    '.metadata.finalizers[="a/b"]',
    '.spec.containers[name="web",port=80].image',
  ]);
});
