import { expect, test } from "vitest";
import { findGuardLimitIssues, findInFlightIssue, guardLimits } from "./guard-limits.ts";

const wrong = (input: Parameters<typeof findGuardLimitIssues>[0]) =>
  findGuardLimitIssues(input).map(({ pointer, detail }) => `${pointer} ${detail}`);

test.each([0, -1, Number.NaN, Infinity, 1e9, Number.MIN_VALUE, 100_001])(
  "a rate of %s is one mistake, whatever follows from it",
  (ratePerSecond) => {
    expect(wrong({ ratePerSecond })).toEqual([
      `/ratePerSecond is ${ratePerSecond}; write calls per second from 0.001 to 100000`,
    ]);
  },
);

test("everything that is wrong is told at once, with the cure", () => {
  expect(
    wrong({
      ratePerSecond: -5,
      burst: 1.5,
      minRatePerSecond: Number.NaN,
      tokenTtlMs: 5,
      maxWaitMs: 0,
    }),
  ).toEqual([
    "/ratePerSecond is -5; write calls per second from 0.001 to 100000",
    "/minRatePerSecond is NaN; write calls per second from 0.001 to 100000",
    "/tokenTtlMs is 5; write whole ms from 10 to 1000",
    "/maxWaitMs is 0; write whole ms from 10 to 10000",
    "/burst is 1.5; write a whole number from 2 to 1000000",
  ]);
});

test("a burst that the life of tokens would eat up says how large it must be", () => {
  expect(wrong({ ratePerSecond: 500, burst: 51 })).toEqual([
    "/burst is 51; write at least 52 for 500 calls/s with tokens of 100 ms, or lower the rate",
  ]);
  expect(wrong({ ratePerSecond: 500, burst: 52 })).toEqual([]);
});

test("a lowest rate above the rate is refused", () => {
  expect(wrong({ ratePerSecond: 10, minRatePerSecond: 11 })).toEqual([
    "/minRatePerSecond is 11; write at most the rate, 10",
  ]);
});

test("text that looks like a number is no number", () => {
  const fromJavaScript = { ratePerSecond: "500" } as unknown as { ratePerSecond: number };
  expect(wrong(fromJavaScript)).toEqual([
    '/ratePerSecond is "500"; write calls per second from 0.001 to 100000',
  ]);
});

test.each([0.001, 0.5, 10, 333.25, 100_000])("a rate of %s alone is enough", (ratePerSecond) => {
  expect(guardLimits({ ratePerSecond })).toMatchObject({ ratePerSecond });
});

test("calls at once are counted in whole numbers", () => {
  expect([1, 64, 10_000].map(findInFlightIssue)).toEqual([undefined, undefined, undefined]);
  for (const value of [0, -1, 1.5, Number.NaN, Infinity, 10_001]) {
    expect(findInFlightIssue(value)).toContain("write a whole number from 1 to 10000");
  }
});
