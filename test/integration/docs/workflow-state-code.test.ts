import { defineWorkflow, type WorkflowContext } from "@konverge/workflow";
import { expect, test } from "vitest";
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
