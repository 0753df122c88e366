import { expect, test } from "vitest";
import { convergenceOf, sloOf } from "./convergence-view.ts";

test("names the cause of the most time, and the manager of contention", () => {
  const rollups = [
    { atMs: 0, counts: { "convergence.contention": 600, "convergence.handler": 100 } },
    { atMs: 60_000, counts: { "convergence.queue": 300, "outcome.done": 2 } },
  ];
  const managers = [{ manager: "argocd", attempts: 4, flips: 0 }];
  expect(convergenceOf(rollups, managers)).toEqual({
    totalMs: 1_000,
    causes: [
      { cause: "contention", ms: 600, share: 0.6 },
      { cause: "queue", ms: 300, share: 0.3 },
      { cause: "handler", ms: 100, share: 0.1 },
    ],
    summary: "60 % of the time is spent on contention with argocd.",
  });
  expect(convergenceOf([], managers)).toBeUndefined();
});

test("names the cause of late changes, and the part of the budget that they use", () => {
  const slo = { thresholdMs: 30_000, objective: 0.99 };
  const rollups = [
    { atMs: 0, counts: { "slo.good": 990, "convergence.handler": 90_000 } },
    { atMs: 60_000, counts: { "slo.bad": 20, "slo.bad.outage": 1_500, "slo.bad.handler": 500 } },
  ];
  expect(sloOf(rollups, slo, [])).toEqual({
    ...slo,
    good: 990,
    bad: 20,
    budgetUsed: expect.closeTo(20 / 1_010 / 0.01),
    causes: [
      { cause: "outage", ms: 1_500, share: 0.75 },
      { cause: "handler", ms: 500, share: 0.25 },
    ],
    summary:
      "98.01 % of 1010 changes met the objective of 99 % within 30 s. The others spent 75 % of their time on waits for the API server.",
  });
  expect(sloOf([], slo, [])).toMatchObject({
    budgetUsed: 0,
    summary: "The objective is 99 % within 30 s; there were no changes.",
  });
});
