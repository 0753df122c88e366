import { expect, test } from "vitest";
import { TerminalError } from "@konverge/core";
import { defineWorkflow } from "@konverge/workflow";
import { until } from "../../support/until.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";

const harness = useWorkflows();

/** A body that ends when its signal is aborted. */
function longBody() {
  const reasons: unknown[] = [];
  let begun = 0;
  const body = async ({ signal }: { readonly signal: AbortSignal }): Promise<string> => {
    begun += 1;
    const { promise, resolve } = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    reasons.push(signal.reason);
    throw signal.reason;
  };
  return { body, reasons, begun: () => begun };
}

test("an abort button ends a long body, whose step is undone when the run fails", async () => {
  const copy = longBody();
  const log: string[] = [];
  const workflow = defineWorkflow("copying", { version: 1 }, async (w) => {
    const first = await w.race({
      copy: () => w.step("copy", copy.body, { undo: () => void log.push("undo copy") }),
      abort: () => w.signal<string>("abort"),
      other: () => w.signal("other"),
    });
    await w.step("react", async () => void log.push(first.branch));
    await w.signal("end");
    throw new TerminalError("the end");
  });
  const runs = harness.openRuns();
  // One slot: a body that went on would hold it.
  runs.work({ workflows: [workflow], workerId: "w1", concurrency: 1 });
  const ref = { workflow: "copying", id: "a" };
  await runs.start(workflow, undefined, { id: "a" });
  await until("the body runs", () => copy.begun() === 1);
  await runs.signal(ref, "abort", { payload: "ann" });
  const run = await inStatus(runs, workflow, "a", "waiting");
  expect(copy.reasons).toMatchObject([{ name: "BranchLostError" }]);
  expect(run.waits?.map(({ step }) => step)).toEqual(["end"]);
  const steps = await runs.steps(ref);
  expect(steps.find(({ kind }) => kind === "race")).toMatchObject({
    name: "copy | abort | other",
    branch: "abort",
    value: "ann",
    lost: ["copy"],
  });
  expect(steps.find(({ name }) => name === "copy")).toMatchObject({
    error: { code: "race_lost" },
    attempts: 1,
  });
  await runs.signal(ref, "other");
  await runs.signal(ref, "end");
  expect(await ended(runs, workflow, "a")).toMatchObject({ status: "failed" });
  expect(log).toEqual(["abort", "undo copy"]);
  expect(copy.begun()).toBe(1);
  expect((await runs.steps(ref)).some(({ name }) => name === "other")).toBe(false);
});

test("a body that ignores its signal holds no slot, and its late result is not recorded", async () => {
  const { promise: late, resolve: release } = Promise.withResolvers<void>();
  let begun = false;
  let isOver = false;
  const workflow = defineWorkflow("deaf", { version: 1 }, async (w) => {
    const first = await w.race({
      copy: () =>
        w.step("copy", async () => {
          begun = true;
          await late;
          isOver = true;
          return "late";
        }),
      abort: () => w.signal("abort"),
    });
    await w.signal("end");
    return first.branch;
  });
  const quick = defineWorkflow("quick", { version: 1 }, async (w) => await w.now());
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow, quick], workerId: "w1", concurrency: 1 });
  const ref = { workflow: "deaf", id: "a" };
  await runs.start(workflow, undefined, { id: "a" });
  await until("the body runs", () => begun);
  await runs.signal(ref, "abort");
  await inStatus(runs, workflow, "a", "waiting");
  await runs.start(workflow, undefined, { id: "b" });
  await until("another run of the workflow begins", async () => {
    const run = await runs.get({ workflow: "deaf", id: "b" });
    return run?.startedAtMs !== undefined;
  });
  await runs.signal({ workflow: "deaf", id: "b" }, "abort");
  release();
  await until("the lost body ends", () => isOver);
  await runs.signal(ref, "end");
  expect(await ended(runs, workflow, "a")).toMatchObject({ status: "done", result: "abort" });
  const copy = (await runs.steps(ref)).find(({ name }) => name === "copy");
  expect(copy).toMatchObject({ error: { code: "race_lost" } });
  expect(copy).not.toHaveProperty("value");
});

test("a child in a losing branch is cancelled, and the run continues at once", async () => {
  const child = defineWorkflow("raced-child", { version: 1 }, async (w) => {
    await w.signal("never");
  });
  const parent = defineWorkflow("racing-parent", { version: 1 }, async (w) => {
    const first = await w.race({
      child: () => w.child("deploy", child, undefined),
      abort: () => w.signal("abort"),
    });
    return first.branch;
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [parent, child], workerId: "w1" });
  await runs.start(parent, undefined, { id: "p" });
  await inStatus(runs, child, "p.deploy", "waiting");
  await runs.signal({ workflow: "racing-parent", id: "p" }, "abort");
  expect(await ended(runs, parent, "p")).toMatchObject({ status: "done", result: "abort" });
  expect(await ended(runs, child, "p.deploy")).toMatchObject({
    status: "cancelled",
    cancel: { reason: "its parent p has ended its branch of a race" },
  });
});
