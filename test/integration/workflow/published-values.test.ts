import { expect, test } from "vitest";
import { defineWorkflow, type AnyWorkflow } from "@konverge/workflow";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { createExecutions } from "./execution-harness.ts";

const harness = useQueues();

/** Runs the workflow to its end. Returns the number of calls to Redis and the run. */
async function callsOf(workflow: AnyWorkflow) {
  let calls = 0;
  const place = { prefix: harness.prefix, cluster: "c", retentionMs: 60_000 };
  const store = createRedisRunStore({
    call(run) {
      calls += 1;
      return run(harness.redis);
    },
    ...place,
  });
  const executions = createExecutions(store, {});
  await executions.start(workflow, "r");
  calls = 0;
  await executions.finish(workflow, "r");
  return { calls, run: await store.get({ workflow: workflow.name, id: "r" }) };
}

test("published values need no calls to Redis beside those of the steps", async () => {
  const steps = 20;
  const silent = defineWorkflow("silent", { version: 1 }, async (w) => {
    for (let step = 0; step < steps; step += 1) await w.step("work", () => step);
    return null;
  });
  const publishing = defineWorkflow("publishing", { version: 1 }, async (w) => {
    for (let step = 0; step < steps; step += 1) {
      for (let share = 0; share < 50; share += 1) w.set("progress", { step, share });
      await w.step("work", () => step);
    }
    w.set("progress", "done");
    return null;
  });
  const without = await callsOf(silent);
  const { calls, run } = await callsOf(publishing);
  expect(run?.published).toEqual({ progress: "done" });
  expect(calls).toBe(without.calls);
});

test("a value published before a long body can be read while the body runs", async () => {
  const place = { prefix: harness.prefix, cluster: "c", retentionMs: 60_000 };
  const store = createRedisRunStore({ call: (run) => run(harness.redis), ...place });
  const ref = { workflow: "copying", id: "r" };
  let seen: unknown;
  const copying = defineWorkflow("copying", { version: 1 }, async (w) => {
    w.set("phase", "copy");
    await w.step("copy", async () => {
      // The body ends when the value is there, however long that takes.
      while (seen === undefined) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        seen = (await store.get(ref))?.published;
      }
      return null;
    });
    return null;
  });
  const executions = createExecutions(store, {});
  await executions.start(copying, "r");
  await executions.finish(copying, "r");
  expect(seen).toEqual({ phase: "copy" });
});
