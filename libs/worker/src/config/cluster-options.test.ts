import { expect, test } from "vitest";
import {
  clusterLimits,
  CONSERVATIVE_RATE,
  findClusterIssues as issuesOf,
} from "./cluster-options.ts";

test("reports all invalid limits of all clusters together, with a fix", () => {
  const issues = issuesOf({
    default: { rate: 0, burst: 1, minRate: -1, maxInFlight: 1.5 },
    edge: { rate: 500, burst: 40 },
    fine: {},
  });
  expect(issues).toEqual([
    {
      pointer: "/clusters/default/rate",
      detail: "clusters.default.rate: must be 0.001 to 100000 calls per second (got 0)",
    },
    {
      pointer: "/clusters/default/minRate",
      detail: "clusters.default.minRate: must be 0.001 to 100000 calls per second (got -1)",
    },
    {
      pointer: "/clusters/default/burst",
      detail: "clusters.default.burst: must be an integer from 2 to 1000000 (got 1)",
    },
    {
      pointer: "/clusters/default/maxInFlight",
      detail: "clusters.default.maxInFlight: must be an integer from 1 to 10000 (got 1.5)",
    },
    {
      pointer: "/clusters/edge/burst",
      detail:
        "clusters.edge.burst: must be at least 52 for 500 calls/s with tokens of 100 ms (got 40); raise it, or lower the rate",
    },
  ]);
});

test.each([0, -3, Number.NaN, Infinity, 1e9, "500", null])("rejects a rate of %s", (rate) => {
  expect(issuesOf({ default: { rate } }).map(({ pointer }) => pointer)).toEqual([
    "/clusters/default/rate",
  ]);
});

test("reports a misspelled option, an empty cluster name and a cluster that is not an object", () => {
  expect(issuesOf({ "a/b": { rates: 5 }, "": {}, c: 5 }).map(({ pointer }) => pointer)).toEqual([
    "/clusters/a~1b/rates",
    "/clusters/",
    "/clusters/c",
  ]);
});

test("accepts the documented values of the options", () => {
  expect(
    issuesOf({ default: { rate: 10, burst: 20, minRate: 1, maxInFlight: 4, context: "kind" } }),
  ).toEqual([]);
});

test("the conservative rate is valid alone and with other options", () => {
  expect(
    issuesOf({ default: CONSERVATIVE_RATE, edge: { ...CONSERVATIVE_RATE, maxInFlight: 4 } }),
  ).toEqual([]);
});

test("reports every invalid option of a breaker by its configuration name, with a fix", () => {
  const breaker = {
    failures: 0,
    calls: 1.5,
    failedShare: "all",
    openMin: "10s",
    openMax: "2s",
    quorum: 3,
  };
  const details = (options: object) => issuesOf({ default: options }).map(({ detail }) => detail);
  expect(details({ breaker })).toEqual([
    "clusters.default.breaker.quorum: is unknown; valid options: failures, calls, failedShare, openMin, openMax",
  ]);
  const { quorum: _, ...known } = breaker;
  expect(issuesOf({ default: { breaker: known } })).toEqual([
    {
      pointer: "/clusters/default/breaker/failures",
      detail: "clusters.default.breaker.failures: must be an integer from 1 to 1000 (got 0)",
    },
    {
      pointer: "/clusters/default/breaker/calls",
      detail: "clusters.default.breaker.calls: must be an integer from 1 to 10000 (got 1.5)",
    },
    {
      pointer: "/clusters/default/breaker/failedShare",
      detail: 'clusters.default.breaker.failedShare: must be a share from 0.01 to 1 (got "all")',
    },
    {
      pointer: "/clusters/default/breaker/openMin",
      detail:
        "clusters.default.breaker.openMin: must be at most the longest open time, 2000 ms (got 10000)",
    },
  ]);
  expect(details({ breaker: { openMax: "1h", openMin: "10 s" } })).toEqual([
    'clusters.default.breaker.openMin: the value "10 s" is not a duration; write milliseconds or text such as "30s"',
  ]);
  expect(details({ breaker: { openMax: "1h" } })).toEqual([
    "clusters.default.breaker.openMax: must be from 100 to 300000 ms (got 3600000)",
  ]);
  expect(details({ breaker: 12 })).toEqual([
    "clusters.default.breaker: must be an object such as { failures: 12 }; omit it for the defaults",
  ]);
  expect(details({ breaker: { openMin: "20s" } })).toEqual([]);
});

test("passes the options of a breaker to the guard, with times in ms", () => {
  const breaker = {
    failures: 30,
    calls: 60,
    failedShare: 0.8,
    openMin: "500ms",
    openMax: 15_000,
  } as const;
  expect(clusterLimits({ breaker })).toEqual({
    breaker: { failures: 30, calls: 60, failedShare: 0.8, openMs: 500, maxOpenMs: 15_000 },
  });
  expect(clusterLimits({})).toEqual({});
});
