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
