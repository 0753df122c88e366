import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Buckets } from "./buckets.ts";

const SLOW = { ratePerSecond: 0.001, burst: 3 };

test("the number of buckets is bounded, and the emptiest ones stay", () => {
  const buckets = new Buckets(SLOW, 10);
  for (let n = 0; n < 3; n++) expect(buckets.take("greedy")).toBe(0);
  for (let n = 0; n < 1_000; n++) expect(buckets.take(`user-${n}`)).toBe(0);
  expect(buckets.size).toBeLessThanOrEqual(10);
  expect(buckets.take("greedy")).toBeGreaterThan(0);
});

test("full buckets are removed first", () => {
  const buckets = new Buckets({ ratePerSecond: 1e9, burst: 3 }, 2);
  buckets.charge("debtor", 1e12);
  for (let n = 0; n < 100; n++) expect(buckets.take(`user-${n}`)).toBe(0);
  expect(buckets.take("debtor")).toBeGreaterThan(0);
});

test("an owner never gets more than its burst while its bucket is stored", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(4), { maxLength: 100 }), (owners) => {
      const buckets = new Buckets(SLOW, 5);
      const taken = new Map<number, number>();
      for (const owner of owners) {
        if (buckets.take(`${owner}`) === 0) taken.set(owner, (taken.get(owner) ?? 0) + 1);
      }
      for (const [owner, count] of taken) {
        expect(count).toBe(Math.min(SLOW.burst, owners.filter((each) => each === owner).length));
      }
    }),
  );
});
