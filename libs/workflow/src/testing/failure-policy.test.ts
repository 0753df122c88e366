import { TerminalError } from "@konverge/core";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineWorkflow } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

/** A workflow whose code a test corrects. */
function faulty() {
  const code: { answer: { b: number } | undefined } = { answer: undefined };
  const undone: string[] = [];
  const workflow = defineWorkflow("faulty", { version: 1 }, async (w) => {
    await w.step("charge", async () => 1, { undo: () => void undone.push("charge") });
    const { b } = code.answer as { b: number };
    return await w.step("ship", async () => b);
  });
  return { workflow, code, undone };
}

test("a bug blocks the run with its place and undoes nothing, and corrected code continues it", async () => {
  const { workflow, code, undone } = faulty();
  const t = testWorkflow(workflow, undefined);
  const run = await t.settle();
  expect(run).toMatchObject({ status: "blocked", blockedError: { code: "TypeError" } });
  expect(run.blockedReason).toContain('throw new TerminalError("...")');
  expect(run.blockedReason).toContain("property 'b' of");
  expect(run.blockedError?.frames?.[0]).toContain("failure-policy.test.ts");
  expect(undone).toEqual([]);
  code.answer = { b: 2 };
  const done = await t.advance("1m");
  expect(done).toMatchObject({ status: "done", result: 2 });
  expect(done).not.toHaveProperty("blockedError");
  expect(t.bodies).toEqual(["charge", "ship"]);
});

test("a cancellation ends a run that a bug blocks, and undoes its steps", async () => {
  const { workflow, undone } = faulty();
  const t = testWorkflow(workflow, undefined);
  await t.settle();
  expect(await t.cancel()).toMatchObject({ status: "cancelled" });
  expect(undone).toEqual(["charge"]);
});

test("a bug in a branch lets running bodies end, and keeps their records", async () => {
  const workflow = defineWorkflow("branches", { version: 1 }, async (w) => {
    await Promise.all([
      w.step("slow", async () => await new Promise((resolve) => setTimeout(() => resolve(1), 20))),
      w
        .step("fast", async () => 2)
        .then(() => {
          throw new RangeError("a bug");
        }),
    ]);
  });
  const t = testWorkflow(workflow, undefined);
  expect(await t.settle()).toMatchObject({ status: "blocked" });
  expect([...(await t.steps()).keys()].toSorted()).toEqual(["fast", "slow"]);
});

test("a TerminalError, also as a cause, fails the run and undoes it", async () => {
  const undone: string[] = [];
  const workflow = defineWorkflow("terminal", { version: 1 }, async (w) => {
    await w.step("charge", async () => 1, { undo: () => void undone.push("charge") });
    throw new Error("stopped", { cause: new TerminalError("no quota") });
  });
  const run = await testWorkflow(workflow, undefined).settle();
  expect(run).toMatchObject({ status: "failed", error: { code: "Error", message: "stopped" } });
  expect(run.error?.frames?.join("\n")).toContain("caused by TerminalError: ");
  expect(undone).toEqual(["charge"]);
});

test("a stricter schema does not parse a recorded signal again", async () => {
  const strict = z.object({ by: z.string(), reason: z.string() });
  const code: { schema: z.ZodType } = { schema: z.object({ by: z.string() }) };
  const workflow = defineWorkflow("approval", { version: 1 }, async (w) => {
    const answer = await w.signal("approve", { schema: code.schema });
    await w.signal("go");
    return answer;
  });
  const t = testWorkflow(workflow, undefined);
  await t.signal("approve", { by: "ann" });
  code.schema = strict;
  expect(await t.signal("go")).toMatchObject({ status: "done", result: { by: "ann" } });
});

test("a run at the limit of steps is blocked, undoes nothing, and continues with a higher limit", async () => {
  const limits = { steps: 3 };
  const undone: string[] = [];
  const workflow = defineWorkflow("many", { version: 1, limits }, async (w) => {
    await w.step("first", async () => 0, { undo: () => void undone.push("first") });
    for (let n = 0; n < 5; n += 1) await w.step(`s${n}`, async () => n);
  });
  const t = testWorkflow(workflow, undefined);
  const run = await t.settle();
  expect(run).toMatchObject({ status: "blocked" });
  expect(run.blockedReason).toContain("the run has 3 recorded steps, the limit is 3; increase");
  expect(undone).toEqual([]);
  limits.steps = 6;
  expect(await t.advance("1m")).toMatchObject({ status: "done" });
});

test("a failure keeps the types and messages of its causes", async () => {
  const workflow = defineWorkflow("causes", { version: 1 }, async () => {
    const refused = new RangeError("connect ECONNREFUSED 10.0.0.7:5432");
    throw new TypeError("cannot load", { cause: new Error("query failed", { cause: refused }) });
  });
  const run = await testWorkflow(workflow, undefined).settle();
  const text = run.blockedError?.frames?.join("\n");
  expect(text).toContain("caused by Error: query failed");
  expect(text).toContain("caused by RangeError: connect ECONNREFUSED 10.0.0.7:5432");
});
