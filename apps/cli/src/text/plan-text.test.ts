import type { PlanRecord } from "@konverge/records";
import { expect, test } from "vitest";
import { planText } from "./plan-text.ts";

const plan: PlanRecord = {
  kind: "plan",
  id: "p1",
  key: "node-pool/default/nodepools.demo.konverge.dev/demo/blue",
  controller: "node-pool",
  worker: "w1",
  startedAt: new Date().toISOString(),
  finishedAt: new Date().toISOString(),
  durationMs: 120,
  outcome: "requeueAfter",
  afterMs: 30_000,
  complete: true,
  hash: "ab".repeat(32),
  summary: { created: 1, changed: 1, deleted: 1, replaced: 0, unchanged: 0 },
  changes: [
    {
      resource: "configmaps",
      kind: "ConfigMap",
      namespace: "demo",
      name: "blue",
      action: "created",
      writes: [{ verb: "apply", changed: true }],
      patch: { data: { color: "blue" } },
    },
    {
      resource: "nodepools.demo.konverge.dev",
      kind: "NodePool",
      namespace: "demo",
      name: "blue",
      action: "changed",
      writes: [{ verb: "patch", changed: true }],
      patch: { spec: { size: 3, zone: null } },
      fieldsTakenOver: [{ manager: "kubectl", path: "spec.size" }],
    },
    {
      resource: "pods",
      kind: "Pod",
      namespace: "demo",
      name: "old",
      action: "deleted",
      terminating: true,
      writes: [{ verb: "delete", changed: true }],
    },
  ],
  moreChanges: 7,
  events: [
    { type: "Normal", reason: "Made", message: "made blue", kind: "NodePool", name: "blue" },
  ],
  externals: ["charge"],
  runs: [{ workflow: "roll" }],
  gaps: [{ about: "pods demo/old", reason: "unknown grace period" }],
  reads: 4,
  calls: { count: 9, durationMs: 80, rateLimitMs: 0 },
};

test("prints each change of a plan with its fields, and what the plan cannot determine", () => {
  const lines = planText(plan).split("\n");
  expect(lines).toEqual(
    expect.arrayContaining([
      "+ configmaps demo/blue created",
      '    data.color: "blue"',
      "~ nodepools.demo.konverge.dev demo/blue changed",
      "    spec.size: 3",
      "    spec.zone: (removed)",
      "    takes over spec.size from kubectl",
      "- pods demo/old deleted (waits for its finalizers)",
      "and 7 more objects",
      "event: Normal Made on NodePool blue: made blue",
      "external call skipped: charge",
      "run: roll",
      "unknown: pods demo/old: unknown grace period",
    ]),
  );
  expect(planText(plan)).toContain("requeueAfter after 30s");
});

test("marks an incomplete plan, and prints its error", () => {
  const error = { code: "not_plannable", message: "exec has no dry run" };
  const text = planText({ ...plan, outcome: "retry", complete: false, error });
  expect(text).toContain("(incomplete: more changes may follow)");
  expect(text).toContain("not_plannable: exec has no dry run");
});
