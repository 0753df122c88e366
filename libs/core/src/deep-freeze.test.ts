import { expect, test } from "vitest";
import { deepFreeze } from "./deep-freeze.ts";
import { parseJson } from "./lossless-json.ts";

test("freezes objects and lists deeply, and returns the value", () => {
  const item = { n: 1 };
  const value = { spec: { list: [item] } };
  expect(deepFreeze(value)).toBe(value);
  expect(() => void value.spec.list.push({ n: 2 })).toThrow(TypeError);
  expect(() => {
    item.n = 2;
  }).toThrow(TypeError);
});
test("accepts scalars and large integers", () => {
  expect(deepFreeze(null)).toBeNull();
  expect(JSON.stringify(deepFreeze(parseJson('{"n":9007199254740993}')))).toBe(
    '{"n":9007199254740993}',
  );
});
