import { defined } from "@konverge/core";
import { expect, test } from "vitest";
import { defineWorkflow, openWorkflows } from "@konverge/workflow";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import type { RunFilter } from "../../../libs/workflow/src/store/run-queries.ts";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { createExecutions } from "./execution-harness.ts";

const harness = useQueues();
const RETENTION_MS = 60_000;
let calls = 0;
const openStore = () =>
  createRedisRunStore({
    call(run) {
      calls += 1;
      return run(harness.redis);
    },
    prefix: harness.prefix,
    cluster: "c",
    retentionMs: RETENTION_MS,
  });
const error = { code: "step_failed", message: "no" };

test("a rare label is found among many runs with few commands, in pages of bounded cost", async () => {
  const store = openStore();
  const names = runNames(harness.prefix, "c", "w");
  const few = { tier: "gold", region: "eu" };
  // Written directly, because the cost depends on the size of the indexes only.
  const pipeline = harness.redis.pipeline();
  for (let n = 0; n < 20_000; n += 1) {
    pipeline.zadd(names.index, 1_000 + n, `other-${n}`);
    pipeline.zadd(`${names.statuses}label/region=eu`, 1_000 + n, `other-${n}`);
    pipeline.zadd(`${names.statuses}queued`, 1_000 + n, `other-${n}`);
  }
  await pipeline.exec();
  for (let n = 0; n < 5; n += 1) {
    await store.start({ workflow: "w", id: `gold-${n}`, version: 1, input: null, labels: few });
  }
  const list = async (filter: RunFilter) => {
    calls = 0;
    const { runs } = await store.list("w", { limit: 100, filter });
    return { ids: runs.map(({ id }) => id).toSorted(), calls };
  };
  const gold = ["gold-0", "gold-1", "gold-2", "gold-3", "gold-4"];
  // One range and five runs.
  expect(await list({ labels: { tier: "gold" } })).toEqual({ ids: gold, calls: 6 });
  // And the size of each of three sets.
  expect(await list({ labels: few, status: "queued" })).toEqual({ ids: gold, calls: 9 });
  const all = await list({ labels: few, version: 1, error: "none" });
  expect(all).toEqual({ ids: [], calls: 8 });
  expect((await list({ sinceMs: Date.now() + 60_000 })).calls).toBe(1);
  // No set is small: a page examines 10,000 runs, in 20 ranges of two commands.
  const common = await list({ labels: { region: "eu" }, version: 7 });
  expect(common.ids).toEqual([]);
  expect(common.calls).toBeLessThanOrEqual(10_000 + 40);
});

test("filters by label, time, version and error, alone and together", async () => {
  const store = openStore();
  const started = async (id: string, version: number, region: string, fails: boolean) => {
    await store.start({ workflow: "w", id, version, input: null, labels: { region } });
    if (!fails) return;
    const held = await store.claim({ workflow: "w", id }, { lease: 1, owner: "o" });
    if (held.kind === "held") await store.leave(held, { kind: "failed", error });
  };
  await started("a", 1, "eu", true);
  await started("b", 2, "eu", true);
  await started("c", 2, "us", true);
  await started("d", 2, "eu", false);
  const names = runNames(harness.prefix, "c", "w");
  for (const [at, id] of ["a", "b", "c", "d"].entries()) {
    await harness.redis.hset(names.run(id), "createdAt", 1_000 + at);
    const sets = [names.index, `${names.statuses}queued`, `${names.statuses}failed`];
    for (const region of ["eu", "us"]) sets.push(`${names.statuses}label/region=${region}`);
    for (const set of sets) await harness.redis.zadd(set, "XX", 1_000 + at, id);
  }
  const list = async (filter: RunFilter, limit = 10) => {
    const { runs, next } = await store.list("w", { limit, filter });
    return [...runs.map(({ id }) => id), ...(next === undefined ? [] : ["more"])];
  };
  const eu = { labels: { region: "eu" } };
  expect(await list(eu)).toEqual(["d", "b", "a"]);
  expect(await list(eu, 2)).toEqual(["d", "b", "more"]);
  expect(await list({ ...eu, sinceMs: 1_001, untilMs: 1_003 })).toEqual(["b"]);
  expect(await list({ version: 2, error: "step_failed" })).toEqual(["c", "b"]);
  expect(await list({ ...eu, status: "failed", version: 2, error: "step_failed" })).toEqual(["b"]);
  expect(await list({ labels: { region: "none" } })).toEqual([]);
  const first = await store.list("w", { limit: 1, filter: { ...eu, untilMs: 1_003 } });
  const { next } = first;
  const second = await store.list("w", {
    limit: 1,
    filter: { ...eu, untilMs: 1_003 },
    ...defined({ from: next }),
  });
  expect([...first.runs, ...second.runs].map(({ id }) => id)).toEqual(["b", "a"]);
});

test("a function changes labels, at one call to Redis for each change", async () => {
  const store = openStore();
  const labelling = defineWorkflow("labelling", { version: 1 }, async (w) => {
    w.label("phase", "copy");
    w.label("size", "large");
    await w.step("copy", () => null);
    await w.step("verify", () => null);
    w.label("phase", "done");
    w.label("size", undefined);
    return null;
  });
  const plain = defineWorkflow("plain", { version: 1 }, async (w) => {
    await w.step("copy", () => null);
    await w.step("verify", () => null);
    return null;
  });
  const executions = createExecutions(store, {});
  const costOf = async (workflow: typeof plain) => {
    await executions.start(workflow, "r");
    calls = 0;
    await executions.finish(workflow, "r");
    return calls;
  };
  expect((await costOf(labelling)) - (await costOf(plain))).toBe(2);
  const find = async (labels: Record<string, string>) =>
    (await store.list("labelling", { limit: 9, filter: { labels } })).runs.map(({ id }) => id);
  expect(await find({ phase: "done" })).toEqual(["r"]);
  expect(await find({ phase: "copy" })).toEqual([]);
  expect(await find({ size: "large" })).toEqual([]);
});

test("an expired run leaves no label in Redis", async () => {
  const store = openStore();
  await store.start({ workflow: "w", id: "a", version: 1, input: null, labels: { region: "eu" } });
  const held = await store.claim({ workflow: "w", id: "a" }, { lease: 1, owner: "o" });
  if (held.kind === "held") await store.leave(held, { kind: "failed", error });
  const names = runNames(harness.prefix, "c", "w");
  expect(await harness.redis.exists(`${names.statuses}labels`)).toBe(1);
  await harness.redis.zadd(names.ended, 1, "a");
  await store.overdue("w");
  const left = await harness.redis.exists(
    `${names.statuses}labels`,
    `${names.statuses}label/region=eu`,
  );
  expect(left).toBe(0);
});

test("a start with invalid labels names each of them", async () => {
  const { prefix, target } = harness;
  const workflows = openWorkflows({ redis: target, prefix });
  try {
    const plain = { name: "plain", version: 1 };
    const labels = { "": "x", size: "a b", ok: "1" };
    await expect(workflows.start(plain, null, { labels })).rejects.toMatchObject({
      code: "invalid_request",
      issues: [{ pointer: "/labels/" }, { pointer: "/labels/size" }],
    });
    const many = Object.fromEntries(Array.from({ length: 11 }, (_, n) => [`n${n}`, "1"]));
    await expect(workflows.start(plain, null, { labels: many })).rejects.toThrow("at most 10");
  } finally {
    await workflows.close();
  }
});
