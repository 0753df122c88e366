import { TerminalError } from "@konverge/core";
import { defineWorkflow, type WorkflowContext } from "@konverge/workflow";
import { expect, test } from "vitest";
import { z } from "zod";
import { testWorkflow } from "../../../apps/cli/src/testing/index.ts";
import { blockOf, functionOf } from "./load-block.ts";

test("docs/workflow-state.md: a run publishes its progress", async () => {
  const block = blockOf("docs/workflow-state.md ts 1");
  const body = await functionOf(block, ["w", "files", "copy"]);
  const copying = defineWorkflow("copying", { version: 1 }, async (w: WorkflowContext) => {
    await body({ w, files: ["a", "b"], copy: (file: string) => file });
    return null;
  });
  const run = await testWorkflow(copying, undefined).settle();
  expect(run).toMatchObject({ status: "done", published: { progress: { done: 1, of: 2 } } });
});

test("docs/workflow-state.md: a start and its function set labels", async () => {
  const started: unknown[] = [];
  const start = await functionOf(blockOf("docs/workflow-state.md ts 2"), [
    "workflows",
    "rollout",
    "spec",
  ]);
  const workflows = { start: async (...args: unknown[]) => void started.push(...args) };
  await start({ workflows, rollout: "rollout", spec: 1 });
  expect(started).toEqual(["rollout", 1, { labels: { region: "eu", tier: "gold" } }]);
  const block = blockOf("docs/workflow-state.md ts 3");
  const body = await functionOf(block, ["w", "spec", "migrate"]);
  const migrating = defineWorkflow("migrating", { version: 1 }, async (w: WorkflowContext) => {
    await body({ w, spec: 1, migrate: () => "migrated" });
    w.label("result", "ok");
    return null;
  });
  const run = await testWorkflow(migrating, undefined).settle();
  expect(run).toMatchObject({ status: "done", labels: { result: "ok" } });
});

test("docs/workflow-state.md: a run answers an update", async () => {
  const sizes: number[] = [];
  const block = blockOf("docs/workflow-state.md ts 4");
  const body = await functionOf(block, ["w", "z", "TerminalError", "limit", "resize"]);
  const pool = defineWorkflow("pool", { version: 1 }, async (w: WorkflowContext) => {
    await body({ w, z, TerminalError, limit: 5, resize: (size: number) => void sizes.push(size) });
    return null;
  });
  const t = testWorkflow(pool, undefined);
  await expect(t.update("resize", { size: 0 })).rejects.toMatchObject({ code: "invalid_request" });
  await expect(t.update("resize", { size: 9 })).rejects.toThrow("at most 5 nodes");
  expect(await t.update("resize", { size: 3 })).toEqual({ size: 3 });
  expect(sizes).toEqual([3]);
});

test("docs/workflow-state.md: a run keeps its log", async () => {
  const block = blockOf("docs/workflow-state.md ts 5");
  const body = await functionOf(block, ["w", "files", "target", "copyAll"]);
  const backup = defineWorkflow("backup", { version: 1 }, async (w: WorkflowContext) => {
    await body({ w, files: ["a"], target: "s3", copyAll: async () => undefined });
    return null;
  });
  const t = testWorkflow(backup, undefined);
  await t.settle();
  expect(await t.logs()).toMatchObject([
    { message: "copy begins", fields: { files: 1 } },
    { message: "connecting", step: "copy", fields: { target: "s3" } },
  ]);
});
