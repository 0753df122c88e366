import { expect, test } from "vitest";
import { defineWorkflow } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

const charge = defineWorkflow("charge", { version: 1 }, async (w, amounts: readonly number[]) => {
  for (const amount of amounts) {
    await w.step(`charge ${amount}`, () => amount, { limit: "stripe" });
  }
  return amounts.length;
});

test("a step waits for the rate of its limit without a worker", async () => {
  const t = testWorkflow(charge, [1, 2, 3, 4], {
    limits: { stripe: { rate: 1, per: "1h", burst: 2 } },
  });
  const waiting = await t.settle();
  expect(waiting.status).toBe("waiting");
  expect(waiting.waits).toMatchObject([
    { step: "charge 3", kind: "step", limit: "stripe", message: 'waiting for limit "stripe"' },
  ]);
  expect(t.bodies).toEqual(["charge 1", "charge 2"]);
  await t.advance("1h");
  expect(t.bodies).toHaveLength(3);
  expect(await t.advance("59m")).toMatchObject({ status: "waiting" });
  expect(await t.advance("1m")).toMatchObject({ status: "done", result: 4 });
});

test("a wait for a limit is no attempt, and a retry takes a permit of its own", async () => {
  const t = testWorkflow(charge, [1], { limits: { stripe: { rate: 1, per: "1h", burst: 1 } } });
  t.failStep("charge 1", new Error("declined"));
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  await t.advance("1h");
  expect((await t.steps()).get("charge 1")).toMatchObject({ attempts: 2, value: 1 });
});

const both = defineWorkflow("both", { version: 1 }, async (w, keys: readonly string[]) => {
  await w.map(keys, async (key) => {
    await w.step(`call ${key}`, () => key, { limit: { name: "api", key } });
  });
});

test("slots are held during a body, and each key has its own", async () => {
  const limits = { api: { concurrency: 1 } };
  const t = testWorkflow(both, ["a", "b"], { limits });
  t.holdStep("call a");
  await t.settle();
  expect(t.bodies.toSorted()).toEqual(["call a", "call b"]);
  expect(await t.releaseStep("call a")).toMatchObject({ status: "done" });
});

test("a freed slot continues the next step", async () => {
  const twice = defineWorkflow("twice", { version: 1 }, async (w, _input: null) => {
    await Promise.all([
      w.step("one", () => 1, { limit: "api" }),
      w.step("two", () => 2, { limit: "api" }),
    ]);
  });
  const t = testWorkflow(twice, null, { limits: { api: { concurrency: 1 } } });
  t.holdStep("one");
  t.holdStep("two");
  await t.settle();
  expect(t.bodies).toHaveLength(1);
  await t.releaseStep(t.bodies[0] ?? "");
  expect(t.bodies.toSorted()).toEqual(["one", "two"]);
  expect(await t.releaseStep(t.bodies[1] ?? "")).toMatchObject({ status: "done" });
});

test("the undo of a step takes a permit, too", async () => {
  const undone: string[] = [];
  const failing = defineWorkflow("failing", { version: 1 }, async (w, _input: null) => {
    await w.step("charge", () => 1, { limit: "stripe", undo: () => void undone.push("charge") });
    await w.step(
      "fail",
      () => {
        throw new Error("no");
      },
      { retry: { attempts: 1 } },
    );
  });
  const t = testWorkflow(failing, null, { limits: { stripe: { rate: 1, per: "1h", burst: 1 } } });
  expect(await t.settle()).toMatchObject({ status: "compensating" });
  expect(undone).toEqual([]);
  expect(await t.advance("1h")).toMatchObject({ status: "failed" });
  expect(undone).toEqual(["charge"]);
});

test("a run whose step uses an unknown limit is blocked, with the known names", async () => {
  const t = testWorkflow(charge, [1], { limits: { strype: { rate: 1 } } });
  const run = await t.settle();
  expect(run.status).toBe("blocked");
  expect(run.blockedReason).toContain('limit "stripe" is not configured (known: "strype")');
  const none = await testWorkflow(charge, [1]).settle();
  expect(none.blockedReason).toContain('limit "stripe" is not configured');
});

test("a cancelled run leaves the queue of the limit", async () => {
  const t = testWorkflow(charge, [1, 2], { limits: { stripe: { rate: 1, per: "1h", burst: 1 } } });
  expect(await t.settle()).toMatchObject({ status: "waiting" });
  expect(await t.cancel()).toMatchObject({ status: "cancelled" });
});

test("rejects an invalid use and invalid limits", async () => {
  expect(() => testWorkflow(charge, [1], { limits: { stripe: {} } })).toThrow(
    "limits.stripe: must have a rate, a concurrency, or both",
  );
  const wrong = defineWorkflow("wrong", { version: 1 }, async (w, _input: null) => {
    await w.step("one", () => 1, { limit: "" });
  });
  expect((await testWorkflow(wrong, null).settle()).blockedReason).toContain('limit of step "one"');
  const costly = defineWorkflow("costly", { version: 1 }, async (w, _input: null) => {
    await w.step("one", () => 1, { limit: { name: "api", cost: 3 } });
  });
  const t = testWorkflow(costly, null, { limits: { api: { rate: 2, burst: 2 } } });
  expect((await t.settle()).blockedReason).toContain("cost 3 exceeds the burst 2");
});
