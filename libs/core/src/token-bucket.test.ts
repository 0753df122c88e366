import * as fc from "fast-check";
import { expect, test } from "vitest";
import { takeToken, type BucketLimits } from "./token-bucket.ts";

const limits = fc.record({
  ratePerSecond: fc.double({ min: 0.01, max: 10_000, noNaN: true }),
  burst: fc.integer({ min: 1, max: 500 }),
});
/** Pauses between askers in ms: mostly crowds, now and then a lull. */
const pauses = fc.array(
  fc.oneof(
    fc.constant(0),
    fc.double({ min: 0, max: 5, noNaN: true }),
    fc.double({ min: 0, max: 60_000, noNaN: true }),
  ),
  {
    minLength: 1,
    maxLength: 200,
  },
);

/** When each taker may go, if it waits as told. */
function departures(bucket: BucketLimits, pausesMs: readonly number[]): number[] {
  let tatMs = -Infinity;
  let nowMs = 0;
  return pausesMs.map((pauseMs) => {
    nowMs += pauseMs;
    const taken = takeToken(bucket, tatMs, nowMs);
    tatMs = taken.tatMs;
    return nowMs + taken.waitMs;
  });
}

test("no window of any length T lets more than rate * T + burst through (P5)", () => {
  fc.assert(
    fc.property(limits, pauses, (bucket, pausesMs) => {
      const times = departures(bucket, pausesMs);
      times.forEach((from, first) => {
        times.slice(first).forEach((to, further) => {
          const allowed = (bucket.ratePerSecond * (to - from)) / 1_000 + bucket.burst;
          expect(further + 1).toBeLessThanOrEqual(allowed + 1e-6 * (1 + allowed));
        });
      });
    }),
    { numRuns: 60 },
  );
});

test("takers leave in the order of asking", () => {
  fc.assert(
    fc.property(limits, pauses, (bucket, pausesMs) => {
      const times = departures(bucket, pausesMs);
      times
        .slice(1)
        .forEach((to, index) => expect(to).toBeGreaterThanOrEqual((times[index] ?? 0) - 1e-6));
    }),
  );
});

test("a full bucket gives its burst at once, then one token an interval", () => {
  const times = departures({ ratePerSecond: 10, burst: 3 }, [0, 0, 0, 0, 0]);
  expect(times).toEqual([0, 0, 0, 100, 200]);
});

test("a pause refills up to the burst and no further", () => {
  expect(departures({ ratePerSecond: 10, burst: 2 }, [0, 0, 60_000, 0, 0])).toEqual([
    0, 0, 60_000, 60_000, 60_100,
  ]);
});

test("nobody waits while the demand stays below the rate", () => {
  const pausesMs = Array.from({ length: 50 }, () => 10);
  expect(departures({ ratePerSecond: 100, burst: 1 }, pausesMs)).toEqual(
    pausesMs.map((ms, index) => ms * (index + 1)),
  );
});
