import { expect, test } from "vitest";
import { defineWorkflow } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

test("spread steps run in the process of the test, with equal results", async () => {
  const make = (spread: boolean) =>
    defineWorkflow("encode", { version: 1 }, async (w) => {
      const outcomes = await w.map(["a", "b"], (name) =>
        w.step(`encode ${name}`, ({ attempt }) => `${name}/${attempt}`, {
          spread,
          undo: () => undefined,
        }),
      );
      await w.step("fail", () => Promise.reject(new Error("no")), {
        spread,
        retry: { attempts: 2 },
      });
      return outcomes;
    });
  const [spread, local] = [testWorkflow(make(true), null), testWorkflow(make(false), null)];
  for (const t of [spread, local]) t.crashIn("encode b");
  const [run, other] = [await spread.settle(), await local.settle()];
  expect(run).toMatchObject({ status: "failed" });
  expect({ ...run, error: run.error?.message }).toEqual({ ...other, error: other.error?.message });
  expect([...(await spread.steps()).keys()]).toEqual([...(await local.steps()).keys()]);
  expect(spread.bodies).toEqual(local.bodies);
});

test("rejects an invalid spread at the call", async () => {
  const workflow = defineWorkflow("encode", { version: 1 }, async (w) => {
    await w.step("encode", () => 1, { spread: "yes" as unknown as boolean });
  });
  const run = await testWorkflow(workflow, null).settle();
  expect(run.blockedReason).toContain('spread of step "encode" must be true or false (got yes)');
});
