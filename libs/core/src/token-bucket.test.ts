import * as fc from "fast-check";
import { expect, test } from "vitest";
import { takeToken, type BucketLimits } from "./token-bucket.ts";

const limits = fc.record({
  ratePerSecond: fc.double({ min: 0.01, max: 10_000, noNaN: true }),
  burst: fc.integer({ min: 1, max: 500 }),
});
/** Pauses between callers in ms: mostly bursts, sometimes a lull. */
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

/** The time at which each caller passes, if it observes its wait. */
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

test("admits at most rate * T + burst in every window T (P5)", () => {
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

test("grants tokens in FIFO order", () => {
  fc.assert(
    fc.property(limits, pauses, (bucket, pausesMs) => {
      const times = departures(bucket, pausesMs);
      times
        .slice(1)
        .forEach((to, index) => expect(to).toBeGreaterThanOrEqual((times[index] ?? 0) - 1e-6));
    }),
  );
});

test("a full bucket grants its burst immediately, then one token per interval", () => {
  const times = departures({ ratePerSecond: 10, burst: 3 }, [0, 0, 0, 0, 0]);
  expect(times).toEqual([0, 0, 0, 100, 200]);
});

test("a pause refills up to the burst and no further", () => {
  expect(departures({ ratePerSecond: 10, burst: 2 }, [0, 0, 60_000, 0, 0])).toEqual([
    0, 0, 60_000, 60_000, 60_100,
  ]);
});

test("does not delay calls below the rate", () => {
  const pausesMs = Array.from({ length: 50 }, () => 10);
  expect(departures({ ratePerSecond: 100, burst: 1 }, pausesMs)).toEqual(
    pausesMs.map((ms, index) => ms * (index + 1)),
  );
});
