import { expect, test } from "vitest";
import { DEFAULT_BREAKER_LIMITS, type BreakerLimits } from "./breaker-limits.ts";
import { findGuardLimitIssues, findInFlightIssue, guardLimits } from "./guard-limits.ts";

const wrong = (input: Parameters<typeof findGuardLimitIssues>[0]) =>
  findGuardLimitIssues(input).map(({ pointer, detail }) => `${pointer} ${detail}`);

test.each([0, -1, Number.NaN, Infinity, 1e9, Number.MIN_VALUE, 100_001])(
  "a rate of %s is reported once",
  (ratePerSecond) => {
    expect(wrong({ ratePerSecond })).toEqual([
      `/ratePerSecond must be 0.001 to 100000 calls per second (got ${ratePerSecond})`,
    ]);
  },
);

test("reports all errors together, with suggested fixes", () => {
  expect(
    wrong({
      ratePerSecond: -5,
      burst: 1.5,
      minRatePerSecond: Number.NaN,
      tokenTtlMs: 5,
      maxWaitMs: 0,
    }),
  ).toEqual([
    "/ratePerSecond must be 0.001 to 100000 calls per second (got -5)",
    "/minRatePerSecond must be 0.001 to 100000 calls per second (got NaN)",
    "/tokenTtlMs must be an integer from 10 to 1000 ms (got 5)",
    "/maxWaitMs must be an integer from 10 to 10000 ms (got 0)",
    "/burst must be an integer from 2 to 1000000 (got 1.5)",
  ]);
});

test("reports the minimum burst for the lifetime of tokens", () => {
  expect(wrong({ ratePerSecond: 500, burst: 51 })).toEqual([
    "/burst must be at least 52 for 500 calls/s with tokens of 100 ms (got 51); raise it, or lower the rate",
  ]);
  expect(wrong({ ratePerSecond: 500, burst: 52 })).toEqual([]);
});

test("rejects a minimum rate above the rate", () => {
  expect(wrong({ ratePerSecond: 10, minRatePerSecond: 11 })).toEqual([
    "/minRatePerSecond must be at most the rate, 10 (got 11)",
  ]);
});

test("rejects a number as text", () => {
  const fromJavaScript = { ratePerSecond: "500" } as unknown as { ratePerSecond: number };
  expect(wrong(fromJavaScript)).toEqual([
    '/ratePerSecond must be 0.001 to 100000 calls per second (got "500")',
  ]);
});

test.each([0.001, 0.5, 10, 333.25, 100_000])("a rate of %s alone is enough", (ratePerSecond) => {
  expect(guardLimits({ ratePerSecond })).toMatchObject({ ratePerSecond });
});

test("a single open time of the breaker moves the default of the other one", () => {
  const times = (breaker: Partial<BreakerLimits>) => {
    const { openMs, maxOpenMs } = guardLimits({ breaker }).breaker;
    return [openMs, maxOpenMs];
  };
  expect(times({})).toEqual([1_000, 5_000]);
  expect(times({ openMs: 20_000 })).toEqual([20_000, 20_000]);
  expect(times({ maxOpenMs: 500 })).toEqual([500, 500]);
  expect(times({ openMs: 200, maxOpenMs: 60_000 })).toEqual([200, 60_000]);
  expect(guardLimits({}).breaker).toEqual(DEFAULT_BREAKER_LIMITS);
});

test("names an invalid limit of the breaker", () => {
  expect(() => guardLimits({ breaker: { failures: 1_001 } })).toThrow(
    "breaker.failures: must be an integer from 1 to 1000 (got 1001)",
  );
});

test("rejects fractional concurrency limits", () => {
  expect([1, 64, 10_000].map(findInFlightIssue)).toEqual([undefined, undefined, undefined]);
  for (const value of [0, -1, 1.5, Number.NaN, Infinity, 10_001]) {
    expect(findInFlightIssue(value)).toContain("must be an integer from 1 to 10000");
  }
});
