import * as fc from "fast-check";
import { expect, test } from "vitest";
import { compareResourceVersions } from "./resource-version.ts";

test.each([
  ["100", "200", -1],
  ["99", "100", -1],
  ["200", "100", 1],
  ["100", "100", 0],
  ["9".repeat(50), `1${"0".repeat(50)}`, -1],
  [`${"1".repeat(49)}2`, `${"1".repeat(49)}1`, 1],
])("compares %s with %s", (left, right, sign) => {
  expect(Math.sign(compareResourceVersions(left, right) ?? NaN)).toBe(sign);
});

test.each(["", "0", "0100", "12a", "-1", "+1", " 1", "1 ", "1.0", "1\n", "١"])(
  "%j is not comparable on either side",
  (odd) => {
    expect(compareResourceVersions(odd, "5")).toBeUndefined();
    expect(compareResourceVersions("5", odd)).toBeUndefined();
  },
);

test("orders like integers, up to 128 bits", () => {
  const versions = fc.bigInt({ min: 1n, max: 2n ** 128n - 1n });
  fc.assert(
    fc.property(versions, versions, (left, right) => {
      const order = compareResourceVersions(String(left), String(right)) ?? NaN;
      expect(Math.sign(order)).toBe(left < right ? -1 : left > right ? 1 : 0);
    }),
  );
});
