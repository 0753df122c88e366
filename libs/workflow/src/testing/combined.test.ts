import { expect, test } from "vitest";
import { defineWorkflow } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

const ONE_PER_MINUTE = { limits: { stripe: { rate: 1, per: "1m", burst: 1 } } } as const;

const charging = defineWorkflow("charging", { version: 1 }, async (w) => {
  await w.step("first", () => 1, { limit: "stripe" });
  const { branch } = await w.race({
    charge: () => w.step("charge", () => 2, { limit: "stripe" }),
    abort: () => w.signal("abort"),
  });
  await w.step("refund", () => 3, { limit: "stripe" });
  return branch;
});

test("a step that loses a race while it waits for a permit leaves the line", async () => {
  const t = testWorkflow(charging, undefined, ONE_PER_MINUTE);
  expect(await t.settle()).toMatchObject({ waits: [{ step: "abort" }, { step: "charge" }] });
  expect(await t.signal("abort")).toMatchObject({ waits: [{ step: "refund", limit: "stripe" }] });
  expect(await t.advance("1m")).toMatchObject({ status: "done", result: "abort" });
  await t.replay();
});

test("a step that loses a race during a body leaves the line, too", async () => {
  const busy = defineWorkflow("busy", { version: 1 }, async (w) => {
    const first = await w.race({
      charge: async () => {
        await w.step("first", () => 1, { limit: "stripe" });
        await w.step("charge", () => 2, { limit: "stripe" });
      },
      copy: () => w.step("copy", () => 3),
    });
    await w.step("refund", () => 3, { limit: "stripe" });
    return first.branch;
  });
  const t = testWorkflow(busy, undefined, ONE_PER_MINUTE);
  t.holdStep("copy");
  expect(await t.settle()).toMatchObject({ status: "running" });
  expect(t.bodies.toSorted()).toEqual(["copy", "first"]);
  expect(await t.releaseStep("copy")).toMatchObject({ waits: [{ step: "refund" }] });
  expect(await t.advance("1m")).toMatchObject({ status: "done", result: "copy" });
  await t.replay();
});
