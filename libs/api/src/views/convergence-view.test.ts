import { expect, test } from "vitest";
import { convergenceOf } from "./convergence-view.ts";

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
