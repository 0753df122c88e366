import type { Run } from "@konverge/client";
import { expect, test } from "vitest";
import { runRows } from "./run-text.ts";

test("shows the unmet conditions of a waiting run in one line", () => {
  const run: Run = {
    id: "rollout/default/r1",
    workflow: "rollout",
    cluster: "default",
    version: 1,
    status: "waiting",
    createdAt: new Date().toISOString(),
    waits: [{ step: "up", kind: "wait", message: "Deployment web: 2 of 3\nupdated\u001B[2J" }],
  };
  const [, line = "", ...more] = runRows([run]).trimEnd().split("\n");
  expect(line).toMatch(/waits for "up": Deployment web: 2 of 3.updated/);
  expect(line).not.toContain("\u001B[2J");
  expect(more).toEqual([]);
});
