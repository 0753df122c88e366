import { expect, test } from "vitest";
import { defineWorkflow } from "@konverge/workflow";
import { until } from "../../support/until.ts";
import { ended, useWorkflows } from "./workflow-harness.ts";

const runs = useWorkflows();

/** A body that ends when the test lets it. */
const heldBody = () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { release: resolve, body: async () => await promise.then(() => "copied") };
};

test("signals, timers and children continue their branches while a body is at work", async () => {
  const copy = heldBody();
  const log: string[] = [];
  const child = defineWorkflow("live-child", { version: 1 }, async () => "child");
  const parent = defineWorkflow("live", { version: 1 }, async (w) => {
    const order: unknown[] = [];
    const react = async (event: Promise<unknown>, name: string): Promise<void> => {
      await event;
      order.push(await w.step(`react to ${name}`, async () => void log.push(name)));
    };
    await Promise.all([
      w.step("copy", copy.body),
      react(w.sleep("pause", "10ms"), "sleep"),
      react(w.signal("go"), "signal"),
      react(w.signal("never", { timeout: "20ms" }), "timeout"),
      react(w.child("child", child, undefined), "child"),
    ]);
    return order.length;
  });
  const workflows = runs.openRuns();
  workflows.work({ workflows: [parent, child], workerId: "w1" });
  await workflows.start(parent, undefined, { id: "a" });
  await until("the others continue", () => log.length === 3);
  await workflows.signal({ workflow: "live", id: "a" }, "go");
  await until("the signal arrives", () => log.length === 4);
  expect(log.toSorted()).toEqual(["child", "signal", "sleep", "timeout"]);
  expect(await workflows.get({ workflow: "live", id: "a" })).toMatchObject({ status: "running" });
  copy.release();
  expect(await ended(workflows, parent, "a")).toMatchObject({ status: "done", result: 4 });
  const steps = await workflows.steps({ workflow: "live", id: "a" });
  expect(steps.at(-1)?.name).toBe("copy");
});

test("a cancellation is thrown in waiting branches while a body is at work", async () => {
  const copy = heldBody();
  let begun = 0;
  const seen: string[] = [];
  const workflow = defineWorkflow("live-cancel", { version: 1 }, async (w) => {
    const waiting = w.signal("never").catch(async (error: Error) => {
      seen.push(error.message);
      throw error;
    });
    const body = async (): Promise<string> => {
      begun += 1;
      return await copy.body();
    };
    await Promise.all([waiting, w.step("copy", body, { undo: () => void seen.push("undo") })]);
  });
  const workflows = runs.openRuns();
  workflows.work({ workflows: [workflow], workerId: "w1" });
  const ref = { workflow: "live-cancel", id: "a" };
  await workflows.start(workflow, undefined, { id: "a" });
  await until("the body runs", () => begun > 0);
  await workflows.cancel(ref, { by: "ann", reason: "why" });
  expect(await ended(workflows, workflow, "a")).toMatchObject({ status: "cancelled" });
  copy.release();
  expect(seen).toContain("undo");
  for (const text of seen) expect(text).toMatch(/undo|the run was cancelled/);
});
