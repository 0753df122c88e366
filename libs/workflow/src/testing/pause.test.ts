import { expect, test } from "vitest";
import { defineWorkflow } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

const release = defineWorkflow("release", { version: 1 }, async (w) => {
  await w.step("one", () => 1);
  await w.sleep("soak", "1h");
  const by = await w.signal<string>("approve", { timeout: "2h" });
  await w.step("two", () => 2);
  return by;
});

test("what comes due in a pause takes effect when the run is resumed", async () => {
  const t = testWorkflow(release, undefined);
  await t.settle();
  expect(await t.pause()).toMatchObject({ status: "paused", waits: [{ step: "soak" }] });
  await t.advance("1h");
  await t.signal("approve", "ann");
  expect([...(await t.steps()).keys()]).toEqual(["one"]);
  expect(await t.resume()).toMatchObject({ status: "done", result: "ann" });
  await t.replay();
});

test("a deadline that passes in a pause has passed when the run is resumed", async () => {
  const t = testWorkflow(release, undefined);
  await t.advance("1h");
  await t.pause();
  expect(await t.advance("3h")).toMatchObject({ status: "paused" });
  expect(await t.resume()).toMatchObject({ status: "done", result: null });
});

test("a held body ends and is recorded, and no other begins", async () => {
  const t = testWorkflow(release, undefined);
  t.holdStep("one");
  await t.settle();
  expect(await t.pause()).toMatchObject({ status: "pausing" });
  expect(await t.releaseStep("one")).toMatchObject({ status: "paused" });
  expect([...(await t.steps()).keys()]).toEqual(["one"]);
  expect(await t.cancel()).toMatchObject({ status: "cancelled" });
  await expect(t.pause()).rejects.toMatchObject({ code: "run_ended" });
});

test("a run that is resumed before its body ends was never paused", async () => {
  const t = testWorkflow(release, undefined);
  t.holdStep("one");
  await t.settle();
  await t.pause();
  expect(await t.resume()).toMatchObject({ status: "running" });
  expect(await t.releaseStep("one")).toMatchObject({ status: "waiting" });
});

test("a resumed run continues beside a body that is still running", async () => {
  const branches = defineWorkflow("branches", { version: 1 }, async (w) => {
    const other = async () => {
      await w.step("one", () => 1);
      await w.step("two", () => 2);
    };
    await Promise.all([w.step("long", () => 0), other()]);
  });
  const t = testWorkflow(branches, undefined);
  t.holdStep("long");
  t.holdStep("one");
  await t.settle();
  await t.pause();
  await t.releaseStep("one");
  expect(t.bodies.toSorted()).toEqual(["long", "one"]);
  await t.resume();
  expect(t.bodies.toSorted()).toEqual(["long", "one", "two"]);
  expect(await t.releaseStep("long")).toMatchObject({ status: "done" });
  await t.replay();
});
