import * as fc from "fast-check";
import { expect, test } from "vitest";
import { scanJson } from "./json-scanner.ts";

test("reports duplicate keys by path", () => {
  const text = '{"a":1,"b":{"c":1,"c":2,"d":[{"e":1,"e":2}]},"a":2}';
  expect(scanJson(text)).toEqual({ duplicates: ["b.c", "b.d[0].e", "a"], error: undefined });
});
test("an escaped key equals its plain form", () => {
  expect(scanJson(String.raw`{"a":1,"\u0061":2}`).duplicates).toEqual(["a"]);
});
test.each([
  ["", "unexpected end of JSON input"],
  ["{", "unexpected end of JSON input"],
  ['{"a"', "unexpected end of JSON input"],
  ['{"a": }', "invalid character '}' looking for beginning of value"],
  ["{a: 1}", "invalid character 'a' looking for beginning of object key string"],
  ['{"a" 1}', "invalid character '1' after object key"],
  ['{"a":1 "b":2}', `invalid character '"' after object key:value pair`],
  ["[1 2]", "invalid character '2' after array element"],
  ["{} x", "invalid character 'x' after top-level value"],
  ["tru", "unexpected end of JSON input"],
  ["nul1", "invalid character '1' in literal null (expecting 'l')"],
])("reports Go's error for %j", (text, error) => {
  expect(scanJson(text).error).toBe(error);
});
test("accepts the output of JSON.stringify", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2), (value, indent) => {
      expect(scanJson(JSON.stringify(value, null, indent)).error).toBeUndefined();
    }),
  );
});
