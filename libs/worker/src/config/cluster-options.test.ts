import { expect, test } from "vitest";
import { CONSERVATIVE_RATE, findClusterIssues as issuesOf } from "./cluster-options.ts";

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
