import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  cloneJson,
  getOwn,
  isJsonObject,
  isRawNumber,
  jsonEquals,
  parseJson,
  setOwn,
  type JsonObject,
  type JsonValue,
} from "./lossless-json.ts";

const integers = fc
  .oneof(
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n }),
    fc.bigInt(),
    fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
  )
  .map(String);
const objectOf = (text: string) => parseJson(text) as JsonObject;

test("any integer text survives parse and stringify in any position", () => {
  fc.assert(
    fc.property(integers, fc.constantFrom("", " ", "\n\t"), (digits, space) => {
      for (const text of [
        `${space}${digits}`,
        `[${space}${digits}]`,
        `{"a":${space}${digits}}`,
        `[0,${space}${digits}]`,
      ]) {
        expect(JSON.stringify(parseJson(text))).toBe(text.replaceAll(/\s/g, ""));
      }
    }),
  );
});

test("a number that fits a double stays a number", () => {
  expect(parseJson("[9007199254740991,-9007199254740991,1.5,1e3]")).toEqual([
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
    1.5,
    1_000,
  ]);
});

test("a long number does not affect other members", () => {
  const parsed = objectOf(
    '{"big":9223372036854775807,"small":7,"text":"9223372036854775807","half":0.5}',
  );
  expect(isRawNumber(parsed.big)).toBe(true);
  expect(parsed).toMatchObject({ small: 7, text: "9223372036854775807", half: 0.5 });
});

test("parses like JSON.parse, except for long integers", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      expect(JSON.stringify(parseJson(text))).toBe(JSON.stringify(JSON.parse(text)));
    }),
  );
});

test("throws SyntaxError for invalid JSON, also on the slow path", () => {
  expect(() => parseJson("{")).toThrow(SyntaxError);
  expect(() => parseJson('{"a":9223372036854775807')).toThrow(SyntaxError);
});

test.each(['{"__proto__":{"polluted":1}}', '{"__proto__":{"polluted":1},"n":9223372036854775807}'])(
  "a member named __proto__ is data: %s",
  (text) => {
    const copy = cloneJson(objectOf(text));
    expect(JSON.stringify(copy)).toBe(text);
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect("polluted" in {}).toBe(false);
    expect(jsonEquals(copy, objectOf(text))).toBe(true);
  },
);

test("setOwn and getOwn never touch the prototype", () => {
  const object: JsonObject = {};
  setOwn(object, "__proto__", { polluted: true });
  expect(getOwn(object, "__proto__")).toEqual({ polluted: true });
  expect(getOwn(object, "polluted")).toBeUndefined();
  expect(getOwn(object, "constructor")).toBeUndefined();
});

test("a clone is equal, shares no mutable part, and keeps long numbers", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const copy = cloneJson(value);
      expect(jsonEquals(copy, value)).toBe(true);
      if (typeof value === "object" && value !== null) expect(copy).not.toBe(value);
    }),
  );
  const original = objectOf('{"list":[{"n":9223372036854775807}]}');
  const copy = cloneJson(original);
  (copy.list as JsonValue[]).push(1);
  expect(JSON.stringify(original)).toBe('{"list":[{"n":9223372036854775807}]}');
});

test("equality compares digits, not doubles", () => {
  expect(jsonEquals(parseJson("9007199254740993"), parseJson("9007199254740993"))).toBe(true);
  expect(jsonEquals(parseJson("9007199254740993"), parseJson("9007199254740992"))).toBe(false);
  expect(jsonEquals(parseJson("9007199254740993"), 9_007_199_254_740_992)).toBe(false);
});

test("equality ignores member order and treats undefined as absent", () => {
  expect(jsonEquals({ a: 1, b: 2 }, { b: 2, a: 1 })).toBe(true);
  expect(jsonEquals({ a: 1, b: undefined }, { a: 1 })).toBe(true);
  expect(jsonEquals({ a: null }, {})).toBe(false);
  expect(jsonEquals([1, 2], [2, 1])).toBe(false);
  expect(jsonEquals([], {})).toBe(false);
  expect(jsonEquals({}, { constructor: Object })).toBe(false);
});

test("equality of parsed values matches their text", () => {
  fc.assert(
    fc.property(fc.json(), fc.json(), (left, right) => {
      const sorted = (text: string) => JSON.stringify(sortMembers(parseJson(text)));
      expect(jsonEquals(parseJson(left), parseJson(right))).toBe(sorted(left) === sorted(right));
    }),
  );
});

test("lists, null and long numbers are not objects", () => {
  const values = [[], null, parseJson("9007199254740993"), 1, "a", {}];
  expect(values.map(isJsonObject)).toEqual([false, false, false, false, false, true]);
});

function sortMembers(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sortMembers);
  if (!isJsonObject(value)) return value;
  const sorted: JsonObject = {};
  for (const key of Object.keys(value).toSorted())
    setOwn(sorted, key, sortMembers(getOwn(value, key) ?? null));
  return sorted;
}
