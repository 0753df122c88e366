import { expect, test } from "vitest";
import { defineWorkflow } from "@konverge/workflow";
import { z } from "zod";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import { ended, inStatus, useWorkflows } from "./workflow-harness.ts";

const harness = useWorkflows();

test("1,000 signals that do not fit change nothing for the run, and are counted beside it", async () => {
  const undone: string[] = [];
  const workflow = defineWorkflow("strict", { version: 1 }, async (w) => {
    await w.step("deploy", async () => 1, { undo: () => void undone.push("deploy") });
    const { by } = await w.signal("approve", { schema: z.object({ by: z.string() }) });
    return await w.step("finish", async () => by);
  });
  const runs = harness.openRuns();
  const { id } = await runs.start(workflow, undefined);
  const ref = { workflow: "strict", id };
  // Sent before the run starts, so that the execution finds all of them.
  for (let n = 0; n < 1_000; n += 1) {
    await runs.signal(ref, "approve", { id: `wrong ${n}`, payload: { bye: n }, by: "bot" });
  }
  runs.work({ workflows: [workflow], workerId: "test" });
  await inStatus(runs, workflow, id, "waiting");
  await runs.signal(ref, "approve", { payload: { by: "ann" } });
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "done", result: "ann" });
  expect((await runs.steps(ref)).map(({ name }) => name)).toEqual(["deploy", "approve", "finish"]);
  expect(undone).toEqual([]);
  const { count, last } = await runs.refusedSignals(ref);
  expect([count, last.length, last[0]]).toEqual([
    1_000,
    10,
    expect.objectContaining({ name: "approve", id: "wrong 999", by: "bot" }),
  ]);
});

test("64 MB of unwanted signals are rejected beyond the limit, and the run continues", async () => {
  const workflow = defineWorkflow("flooded", { version: 1 }, async (w) => await w.signal("go"));
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow], workerId: "test" });
  const { id } = await runs.start(workflow, undefined);
  const ref = { workflow: "flooded", id };
  const payload = "x".repeat(65_000);
  const codes: Record<string, number> = {};
  for (let n = 0; n < 1_000; n += 1) {
    const code = await runs.signal(ref, "misspelt", { payload }).then(
      () => "stored",
      (error: { code?: string }) => error.code ?? "unknown",
    );
    codes[code] = (codes[code] ?? 0) + 1;
  }
  expect(codes).toEqual({ stored: 16, signals_full: 984 });
  await expect(runs.signal(ref, "go")).resolves.toBeUndefined();
  expect((await ended(runs, workflow, id)).status).toBe("done");
});

test("a signal for which a waiting run does not wait continues no execution", async () => {
  let executions = 0;
  const workflow = defineWorkflow("quiet", { version: 1 }, async (w) => {
    executions += 1;
    await w.signal("go");
    return await w.signal("later");
  });
  const runs = harness.openRuns();
  runs.work({ workflows: [workflow], workerId: "test" });
  const { id } = await runs.start(workflow, undefined);
  const ref = { workflow: "quiet", id };
  await inStatus(runs, workflow, id, "waiting");
  await runs.signal(ref, "later", { payload: "early" });
  for (let n = 0; n < 100; n += 1) await runs.signal(ref, "other", { payload: n });
  await runs.signal(ref, "go");
  expect(await ended(runs, workflow, id)).toMatchObject({ status: "done", result: "early" });
  expect(executions).toBe(2);
});

test("a claim costs the same, however many signals of other names are buffered", async () => {
  const workflow = defineWorkflow("cost", { version: 1 }, async () => 1);
  const runs = harness.openRuns();
  const { redis, prefix } = harness;
  let calls = 0;
  const store = createRedisRunStore({
    call: async (run) => {
      calls += 1;
      return await run(redis);
    },
    prefix,
    cluster: "default",
    retentionMs: 60_000,
  });
  const costs: { readonly calls: number; readonly bytes: number }[] = [];
  for (const buffered of [1, 10, 900]) {
    const { id } = await runs.start(workflow, undefined, { id: `cost-${1_000 + buffered}` });
    const ref = { workflow: "cost", id };
    for (let n = 0; n < buffered; n += 1) {
      await runs.signal(ref, "other", { payload: "x".repeat(1_000) });
    }
    calls = 0;
    const held = await store.claim(ref, { lease: 1, owner: "test" });
    const text = JSON.stringify({ ...held, wakeSeq: 0, signalCount: 0 });
    costs.push({ calls, bytes: text.length });
  }
  expect(costs[0]?.calls).toBe(1);
  expect(costs).toEqual([costs[0], costs[0], costs[0]]);
});
