import { expect, test } from "vitest";
import { defineWorkflow } from "../define/define-workflow.ts";
import { testWorkflow } from "./test-workflow.ts";

/** A long body beside branches that wait. */
const branches = defineWorkflow("branches", { version: 1 }, async (w) => {
  const order: string[] = [];
  const note = (name: string) => void order.push(name);
  await Promise.all([
    w.step("copy", async () => "copied").then(note),
    w
      .sleep("pause", "1m")
      .then(() => w.step("after the pause", async () => "pause"))
      .then(note),
    w
      .signal("hello")
      .then(() => w.step("after the signal", async () => "signal"))
      .then(note),
    w.signal("never", { timeout: "2m" }).then((answer) => note(String(answer))),
  ]);
  return order;
});

test("branches continue with signals and timers while a body is at work", async () => {
  const t = testWorkflow(branches, undefined);
  t.holdStep("copy");
  expect(await t.settle()).toMatchObject({ status: "running" });
  expect(t.bodies).toEqual(["copy"]);
  await t.signal("hello");
  expect(t.bodies).toEqual(["copy", "after the signal"]);
  expect(await t.advance("59s")).toMatchObject({ status: "running" });
  expect(t.bodies).toHaveLength(2);
  await t.advance("1s");
  expect(t.bodies).toEqual(["copy", "after the signal", "after the pause"]);
  expect(await t.advance("1m")).toMatchObject({ status: "running" });
  const steps = await t.steps();
  expect(steps.get("after the signal")).toMatchObject({ atMs: 0 });
  expect(steps.get("pause")).toMatchObject({ kind: "sleep", atMs: 60_000 });
  expect(steps.get("never")).toMatchObject({ atMs: 120_000, error: { code: "wait_timeout" } });
  const end = { status: "done", result: ["signal", "pause", "null", "copied"] };
  expect(await t.releaseStep("copy")).toMatchObject(end);
  await t.replay();
});

test.each([
  { event: "abort", what: "a signal" },
  { event: "limit", what: "a deadline" },
])("$what wins against a long body, in every execution", async ({ event }) => {
  const seen = new Set<string>();
  const raced = defineWorkflow("raced", { version: 1 }, async (w) => {
    const first = await Promise.race([
      w.step("copy", async () => "copied"),
      w.signal("abort").then(() => "abort"),
      w.sleep("deadline", "1h").then(() => "limit"),
    ]);
    seen.add(first);
    await w.step("react", async () => first);
    await w.sleep("soak", "2h");
    return first;
  });
  const t = testWorkflow(raced, undefined);
  t.holdStep("copy");
  await t.settle();
  if (event === "abort") await t.signal("abort");
  else await t.advance("1h");
  expect(t.bodies).toEqual(["copy", "react"]);
  await t.releaseStep("copy");
  expect(await t.advance("3h")).toMatchObject({ status: "done", result: event });
  await t.replay();
  expect([...seen]).toEqual([event]);
  expect(t.bodies).toEqual(["copy", "react"]);
});

test("a child's end continues its parent while a body is at work", async () => {
  const child = defineWorkflow("child", { version: 1 }, async (w) => {
    await w.sleep("pause", "1m");
    return "ended";
  });
  const parent = defineWorkflow("parent", { version: 1 }, async (w) => {
    const copy = w.step("copy", async () => "copied");
    const ended = await w.child("child", child, undefined);
    await w.step("react", async () => ended);
    return [ended, await copy];
  });
  const t = testWorkflow(parent, undefined, { children: [child] });
  t.holdStep("copy");
  await t.settle();
  expect(await t.advance("1m")).toMatchObject({ status: "running" });
  expect(t.bodies).toEqual(["copy", "react"]);
  expect(await t.releaseStep("copy")).toMatchObject({
    status: "done",
    result: ["ended", "copied"],
  });
  await t.replay();
});

test("a cancellation reaches waiting branches and the body at once", async () => {
  const undone: string[] = [];
  const errors: string[] = [];
  const cancelled = defineWorkflow("cancelled", { version: 1 }, async (w) => {
    const undo = (name: string) => () => void undone.push(name);
    const all = [
      w.step("copy", async () => 1, { undo: undo("copy") }),
      w.signal("never"),
      w.sleep("pause", "1h"),
    ];
    for (const settled of await Promise.allSettled(all)) {
      errors.push(settled.status === "rejected" ? String(settled.reason) : "fulfilled");
    }
    await all[0];
  });
  const t = testWorkflow(cancelled, undefined);
  t.holdStep("copy");
  await t.settle();
  expect(await t.cancel()).toMatchObject({ status: "cancelled" });
  expect(errors).toHaveLength(3);
  for (const error of errors) expect(error).toContain("the run was cancelled");
  expect(undone).toEqual(["copy"]);
  await t.replay();
});

test("a crash beside a held body runs the body again", async () => {
  const t = testWorkflow(branches, undefined);
  t.holdStep("copy");
  await t.settle();
  t.crashAfter("hello");
  expect(await t.signal("hello")).toMatchObject({ status: "running" });
  await t.advance("2m");
  expect(t.bodies.toSorted()).toEqual(["after the pause", "after the signal", "copy", "copy"]);
  const result = ["signal", "pause", "null", "copied"];
  expect(await t.releaseStep("copy")).toMatchObject({ status: "done", result });
  await t.replay();
});

test("a step that is not held cannot be released, and a held one prevents a replay", async () => {
  const t = testWorkflow(branches, undefined);
  t.holdStep("copy");
  await t.settle();
  await expect(t.releaseStep("pause")).rejects.toThrow('step "pause" is not held');
  await expect(t.replay()).rejects.toThrow("a body is held; call releaseStep before replay");
});
