import type { Run } from "@konverge/client";
import type { RunDetail } from "@konverge/contracts";
import { expect, test } from "vitest";
import { progressLine, runDetails, runRows } from "./run-text.ts";

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

test("shows the wait for a slot", () => {
  const run: Run = {
    id: "rollout/default/r1",
    workflow: "rollout",
    cluster: "default",
    version: 1,
    status: "queued",
    createdAt: new Date().toISOString(),
  };
  const text = runRows([
    { ...run, slotWait: {} },
    { ...run, slotWait: { group: "acme", ahead: 1 } },
  ]);
  expect(text).toMatch(/ waits for a slot$/m);
  expect(text).toMatch(/ waits for a slot of "acme" \(1 run before it\)$/m);
});

test("shows the published values of a run", () => {
  const run: RunDetail = {
    id: "copy/default/r1",
    workflow: "copy",
    cluster: "default",
    version: 1,
    status: "running",
    createdAt: new Date().toISOString(),
    published: { progress: { done: 1, of: 3 } },
    steps: [],
  };
  expect(runDetails(run)).toMatch(/^published +progress {"done":1,"of":3}$/m);
});

test("shows the heartbeats and failures of unfinished steps", () => {
  const at = new Date().toISOString();
  const run: RunDetail = {
    id: "copy/default/r1",
    workflow: "copy",
    cluster: "default",
    version: 1,
    status: "running",
    createdAt: at,
    progress: [
      { step: "copy", attempts: 0, heartbeat: { at, attempt: 1, progress: { row: 7 } } },
      { step: "ping", attempts: 2, message: "no\nroute" },
      {
        step: "pull",
        attempts: 1,
        maxAttempts: 5,
        message: "no image",
        tries: [{ attempt: 1, at, code: "Error", message: "no image" }],
      },
    ],
    steps: [],
  };
  const text = runDetails(run);
  expect(text).toMatch(/^progress +"copy" {"row":7}, heartbeat \S+ ago$/m);
  expect(text).toMatch(/^progress +"ping" 2 failed tries: no.route$/m);
  expect(text).toMatch(/^progress +"pull" 1 of 5 tries failed: no image$/m);
  expect(text).toMatch(/^pull +1 +\S+ +Error: no image$/m);
  const line = progressLine("copy", { at: "2026-11-22T08:09:10.000Z", attempt: 1, progress: "x" });
  expect(line).toBe('08:09:10  progress copy  "x"');
});
