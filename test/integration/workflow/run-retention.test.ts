import { defineWorkflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { createRedisRunStore } from "../../../libs/workflow/src/store/redis-run-store.ts";
import type { KeptRuns } from "../../../libs/workflow/src/store/redis-runs.ts";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import type { RunStore } from "../../../libs/workflow/src/store/run-store.ts";
import { LEAST_KEPT_MS } from "../../../libs/workflow/src/store/scripts/shrink-runs.ts";
import { until } from "../../support/until.ts";
import { ended, useWorkflows } from "./workflow-harness.ts";
import { seed } from "../../support/test-run.ts";

const harness = useWorkflows();
const DAY_MS = 86_400_000;
const WORKFLOW = "report";
const CLUSTER = "c";
const names = () => runNames(harness.prefix, CLUSTER, WORKFLOW);

function openStore(kept: KeptRuns): RunStore {
  return createRedisRunStore({
    call: (run) => run(harness.redis),
    prefix: harness.prefix,
    cluster: CLUSTER,
    retentionMs: DAY_MS,
    keptOf: () => kept,
  });
}

async function begin(store: RunStore, id: string, parent?: string) {
  await store.start({
    workflow: WORKFLOW,
    id,
    version: 1,
    input: null,
    ...(parent === undefined
      ? {}
      : { parent: { workflow: WORKFLOW, id: parent, step: id, round: 1 } }),
  });
  const held = await store.claim({ workflow: WORKFLOW, id }, { lease: 1, owner: "test" });
  if (held.kind !== "held") throw new Error(`${id} is ${held.kind}`);
  return held;
}

/** Ends a run with a step and a result of some bytes. */
async function end(store: RunStore, id: string, bytes: number, parent?: string): Promise<void> {
  const held = await begin(store, id, parent);
  const value = "x".repeat(bytes);
  await store.commit(held, "step", { kind: "step", value }, {});
  await store.leave(held, { kind: "done", result: value });
}

const sizes = async () =>
  (await harness.redis.zrange(`${names().statuses}sizes`, "0", "-1")).map((member) => {
    const [, bytes = "", id = ""] = /^(\d+)\/(.*)$/s.exec(member) ?? [];
    return { member, bytes: Number(bytes), id };
  });
const keptBytes = async () => Number(await harness.redis.hget(`${names().statuses}kept`, "bytes"));
const keysOf = (id: string) => harness.redis.keys(`${harness.prefix}:*/${WORKFLOW}/${id}`);

/** Moves the end of a run into the past. */
async function age(id: string, ms: number): Promise<void> {
  const { ended: endedRuns, statuses } = names();
  const atMs = Date.now() - ms;
  const entry = (await sizes()).find((one) => one.id === id);
  await harness.redis.zadd(endedRuns, atMs, id);
  await harness.redis.zadd(`${statuses}sizes`, atMs, entry?.member ?? "");
}

test("beyond their limit, the oldest ended runs are deleted, and no others", async () => {
  console.log(`KONVERGE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const limitBytes = 300_000;
  const store = openStore({ limitBytes });
  await begin(store, "parent");
  const runs: { id: string; ageMs: number; isProtected: boolean }[] = [];
  for (let n = 0; n < 60; n += 1) {
    const id = `run/${n}`;
    const isChild = random() < 0.2;
    const ageMs = Math.floor(random() * 3 * LEAST_KEPT_MS);
    await end(store, id, Math.floor(random() * 8_000), isChild ? "parent" : undefined);
    await age(id, ageMs);
    runs.push({ id, ageMs, isProtected: isChild || ageMs < LEAST_KEPT_MS - 60_000 });
  }
  const before = new Map((await sizes()).map(({ id, bytes }) => [id, bytes]));
  let total = [...before.values()].reduce((sum, bytes) => sum + bytes, 0);
  expect(await keptBytes()).toBe(total);
  const expected: string[] = [];
  for (const { id } of runs
    .filter(({ isProtected, ageMs }) => !isProtected && ageMs > LEAST_KEPT_MS)
    .toSorted((one, other) => other.ageMs - one.ageMs)) {
    if (total <= limitBytes) break;
    total -= before.get(id) ?? 0;
    expected.push(id);
  }
  expect(expected.length).toBeGreaterThan(0);

  expect((await store.overdue(WORKFLOW)).dropped).toBe(expected.length);
  const left = await sizes();
  expect(await keptBytes()).toBe(total);
  expect(left.map(({ id }) => id).toSorted()).toEqual(
    runs
      .map(({ id }) => id)
      .filter((id) => !expected.includes(id))
      .toSorted(),
  );
  const { places } = await store.places(WORKFLOW, { limit: 100, filter: {} });
  const listed = new Set(places.map(({ id }) => id));
  for (const { id } of runs) {
    const isDropped = expected.includes(id);
    expect({ id, kept: (await store.get({ workflow: WORKFLOW, id })) !== undefined }).toEqual({
      id,
      kept: !isDropped,
    });
    expect(listed.has(id)).toBe(!isDropped);
    if (isDropped) expect(await keysOf(id)).toEqual([]);
  }
  expect((await store.counts(WORKFLOW)).done).toBe(runs.length - expected.length);
  expect((await store.overdue(WORKFLOW)).dropped).toBe(0);
  // The id of a deleted run is free.
  const [first = ""] = expected;
  await begin(store, first);
});

test("one sweep deletes any number of runs", async () => {
  const store = openStore({ limitBytes: 1 });
  const ids = Array.from({ length: 230 }, (_, n) => `r${n}`);
  for (const id of ids) {
    await end(store, id, 1);
    await age(id, 2 * LEAST_KEPT_MS);
  }
  expect((await store.overdue(WORKFLOW)).dropped).toBe(ids.length);
  expect(await keptBytes()).toBe(0);
});

test("the estimate is close to the memory of a run in Redis", async () => {
  const store = openStore({});
  for (const bytes of [0, 1_000, 7_000, 60_000]) {
    const id = `r${bytes}`;
    await end(store, id, bytes);
    const used = await Promise.all(
      (await keysOf(id)).map(async (key) =>
        Number(await harness.redis.call("MEMORY", "USAGE", key, "SAMPLES", "0")),
      ),
    );
    const measured = used.reduce((sum, one) => sum + one, 0);
    const estimate = (await sizes()).find((one) => one.id === id)?.bytes ?? 0;
    expect(estimate / measured, `${bytes}: ${estimate} of ${measured}`).toBeGreaterThan(0.8);
    // A run that a worker ends has further keys, with the same size for any run.
    expect(estimate).toBeLessThan(1.3 * measured + 3_600);
  }
});

test("the sum excludes runs that are resumed, or that a worker of an earlier version has removed", async () => {
  const store = openStore({ limitBytes: 1_000_000 });
  await end(store, "a", 100);
  const held = await begin(store, "b");
  await store.leave(held, { kind: "failed", error: { code: "x", message: "y" } });
  const size = (await sizes()).find(({ id }) => id === "a");
  const { epoch } = (await store.retryFacts({ workflow: WORKFLOW, id: "b" })) ?? {};
  const reopening = { epoch: epoch ?? 0, kept: 0, drop: [], author: {} };
  expect(await store.reopen({ workflow: WORKFLOW, id: "b" }, reopening)).toEqual({
    kind: "resumed",
  });
  expect(await keptBytes()).toBe(size?.bytes);
  await harness.redis.zrem(names().ended, "a");
  await age("a", 2 * DAY_MS);
  await harness.redis.zrem(names().ended, "a");
  await store.overdue(WORKFLOW);
  expect(await sizes()).toEqual([]);
  expect(await keptBytes()).toBe(0);
});

test("the sum counts a run once after a worker of an earlier version resumed it", async () => {
  const store = openStore({ limitBytes: 1_000_000 });
  const fail = { kind: "failed", error: { code: "x", message: "y" } } as const;
  const reference = { workflow: WORKFLOW, id: "a" };
  await store.leave(await begin(store, "a"), fail);
  const [size] = await sizes();
  const { epoch } = (await store.retryFacts(reference)) ?? {};
  await store.reopen(reference, { epoch: epoch ?? 0, kept: 0, drop: [], author: {} });
  // What such a worker leaves.
  const { statuses, run } = names();
  await harness.redis.hset(run("a"), "size", String(size?.bytes));
  await harness.redis.zadd(`${statuses}sizes`, Date.now(), size?.member ?? "");
  await harness.redis.hincrby(`${statuses}kept`, "bytes", size?.bytes ?? 0);
  const held = await store.claim(reference, { lease: 2, owner: "test" });
  if (held.kind !== "held") throw new Error(`the run is ${held.kind}`);
  await store.leave(held, fail);
  const left = await sizes();
  expect(left.map(({ id }) => id)).toEqual(["a"]);
  expect(await keptBytes()).toBe(left[0]?.bytes);
});

test("the retention of a workflow applies in every process", async () => {
  const long = defineWorkflow(
    "long",
    { version: 1, retention: { time: "30d" } },
    async (w, waits: boolean) => {
      if (waits) await w.signal("go");
    },
  );
  const short = defineWorkflow("short", { version: 1 }, async () => undefined);
  const worker = harness.openRuns({ retentionMs: DAY_MS });
  worker.work({ workflows: [long, short], workerId: "test", sweepEveryMs: 100 });
  const leftMs = async (workflow: string, id: string) => {
    const { run } = runNames(harness.prefix, "default", workflow);
    return await harness.redis.pttl(run(id));
  };
  for (const [workflow, input, days] of [
    [long, false, 30],
    [short, undefined, 1],
  ] as const) {
    const { id } = await worker.start(workflow, input);
    await ended(worker, workflow, id);
    expect(await leftMs(workflow.name, id)).toBeGreaterThan(days * DAY_MS - 60_000);
    expect(await leftMs(workflow.name, id)).toBeLessThanOrEqual(days * DAY_MS);
  }
  // A process without the code of the workflow.
  const other = harness.openRuns({ retentionMs: DAY_MS });
  const { id } = await other.start({ name: "long", version: 1 }, true);
  await until("a worker has stored the retention", async () => {
    const { statuses } = runNames(harness.prefix, "default", "long");
    return (await harness.redis.hget(`${statuses}kept`, "ms")) === String(30 * DAY_MS);
  });
  await other.terminate({ workflow: "long", id }, {});
  expect(await leftMs("long", id)).toBeGreaterThan(29 * DAY_MS);
});
