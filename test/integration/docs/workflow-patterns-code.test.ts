import { TerminalError } from "@konverge/core";
import { defineWorkflow, type WorkflowContext } from "@konverge/workflow";
import { expect, test } from "vitest";
import { testWorkflow } from "../../../apps/cli/src/testing/index.ts";
import { blockOf, functionOf } from "./load-block.ts";

/** Loads a block of docs/workflow-patterns.md as the body of a workflow, which receives `env` beside `w`. */
async function patternOf(name: string, env: object, returns?: string) {
  const names = ["w", "spec", "TerminalError", ...Object.keys(env)];
  const body = await functionOf(blockOf(name), names, returns);
  return defineWorkflow("pattern", { version: 1 }, async (w: WorkflowContext, spec: object) => {
    return (await body({ w, spec, TerminalError, ...env })) as never;
  });
}

test("docs/workflow-patterns.md: polls until the build is done, and fails with it", async () => {
  const keys: string[] = [];
  let status = "running";
  const ci = {
    start: (_: object, key: string) => void keys.push(key),
    get: () => ({ status, image: "web:2" }),
  };
  const build = await patternOf("docs/workflow-patterns.md ts 1", { ci }, "image");
  const t = testWorkflow(build, {});
  for (let hour = 0; hour < 5; hour++) {
    expect(await t.advance("1h")).toMatchObject({ status: "waiting" });
  }
  expect((await t.steps()).size).toBe(1);
  status = "done";
  expect(await t.advance("30s")).toMatchObject({ status: "done", result: "web:2" });
  expect(keys).toHaveLength(1);
  status = "failed";
  const failed = await testWorkflow(build, {}).settle();
  expect(failed).toMatchObject({ status: "failed" });
});
