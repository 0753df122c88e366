import { expect, test } from "vitest";
import type { ObjectKey } from "@konverge/core";
import type { RequestClass, WorkQueue } from "@konverge/queue";
import { queueNames } from "../../../libs/queue/src/keys/queue-names.ts";
import { rebaseScript } from "../../../libs/queue/src/scripts/rebase.ts";
import { runScript } from "@konverge/redis";
import { CLUSTER, CONTROLLER, hold, keyOf, useQueues, workOn } from "./queue-harness.ts";
import { until } from "../../support/until.ts";
import { isLongRun } from "../../support/test-run.ts";

const harness = useQueues();
const BACKLOG = isLongRun ? 100_000 : 10_000;

const inTenant = (namespace: string, name: string): ObjectKey => ({ ...keyOf(name), namespace });
async function requestMany(
  queue: WorkQueue,
  keys: readonly ObjectKey[],
  requestClass: RequestClass,
) {
  for (let start = 0; start < keys.length; start += 500) {
    const part = keys.slice(start, start + 500);
    await Promise.all(
      part.map((key) => queue.request(key, { kind: "http" }, { class: requestClass })),
    );
  }
}
const numbered = (tenant: string, count: number) =>
  Array.from({ length: count }, (_, n) => inTenant(tenant, `${n}`));

test.each([
  { backlog: "event", within: 20 },
  // Fewer than the 16 places behind events: only jobs that were already fetched start before it.
  { backlog: "background", within: 12 },
] as const)(
  "an event starts within $within starts, regardless of another tenant's backlog of class $backlog",
  async ({ backlog, within }) => {
    const queue = harness.open();
    await requestMany(queue, numbered("a", BACKLOG), backlog);
    const enough = Promise.withResolvers<void>();
    const starts: (string | undefined)[] = [];
    let askedAfter = 0;
    const worker = workOn(
      queue,
      async ({ key }) => {
        starts.push(key.namespace);
        if (starts.length === 50) {
          await queue.request(inTenant("b", "only"), { kind: "http" }, { class: "event" });
          askedAfter = starts.length;
        }
        if (starts.length === 200) enough.resolve();
        return { kind: "done" };
      },
      { concurrency: 4 },
    );
    await enough.promise;
    await worker.stop();
    expect(askedAfter).toBeGreaterThan(0);
    // It may start before its request is acknowledged.
    expect(starts.slice(50, askedAfter + within)).toContain("b");
  },
);

test("a resync starts within its aging time, regardless of the number of tenants with more urgent work", async () => {
  const agingMs = 10_000;
  const queue = harness.open();
  const starts: number[] = [];
  // The number of waiting requests equals the number of tenants, so that places in the queue hardly move. Few enough for a slow
  // machine to start each of them within the bound.
  const tenants = Array.from({ length: 400 }, (_, n) => inTenant(`t${n}`, "x"));
  await requestMany(queue, tenants, "interactive");
  await queue.request(inTenant("z", "resynced"), { kind: "resync" }, { class: "background" });
  const boundMs = performance.now() + agingMs;
  let resynced = false;
  const worker = workOn(
    queue,
    async ({ key }) => {
      if (key.namespace === "z") resynced = true;
      else if (!resynced) {
        starts.push(performance.now());
        await queue.request(key, { kind: "http" }, { class: "interactive" });
      }
      return { kind: "done" };
    },
    { concurrency: 4, fairness: { agingMs } },
  );
  await until("the start of the resync", () => resynced, 3 * agingMs);
  await worker.kill();
  // It had to wait for the aging time, or the test proves nothing.
  expect(starts.length).toBeGreaterThan(tenants.length);
  // Counts starts instead of time: a stalled machine starts nothing else either.
  expect(starts.filter((atMs) => atMs > boundMs).length).toBeLessThan(20);
});

test("a tenant of weight 3 starts three times as often as one of weight 1", async () => {
  const queue = harness.open();
  const gate = hold();
  const worker = workOn(
    queue,
    async () => {
      await gate.wait();
      return { kind: "done" };
    },
    { concurrency: 1, fairness: { weights: { heavy: 3 } } },
  );
  const { fair } = queueNames(harness.prefix, CLUSTER, CONTROLLER);
  await until("the weights in Redis", () => harness.redis.hexists(fair, "w:heavy"));
  await requestMany(queue, numbered("light", 60), "event");
  await requestMany(queue, numbered("heavy", 60), "event");
  gate.release();
  await until("80 starts", () => worker.started.length >= 80);
  const heavy = worker.started.slice(0, 80).filter(({ key }) => key.namespace === "heavy").length;
  expect(heavy).toBeGreaterThanOrEqual(56);
  expect(heavy).toBeLessThanOrEqual(60);
});

test("new events start a failing key only as often as its bucket allows; user requests always do", async () => {
  const queue = harness.open();
  const key = keyOf("flapping");
  const slow = {
    baseMs: 60_000,
    factor: 1,
    capMs: 60_000,
    steps: Infinity,
    jitter: { kind: "none" },
  } as const;
  const worker = workOn(queue, () => ({ kind: "retry", error: new Error("no") }), {
    backoffs: { conflict: slow, failure: slow, rejected: slow },
  });
  await queue.request(key, { kind: "watch" });
  await until("the first attempt", () => worker.closed.length === 1);
  for (let change = 0; change < 30; change += 1) {
    const before = worker.closed.length;
    await queue.request(key, { kind: "watch" });
    if (before < 6) await until("a change wakes it", () => worker.closed.length > before);
  }
  expect(worker.closed).toHaveLength(6);
  expect((await queue.getKey(key))?.phase).toBe("backoff");
  await queue.request(key, { kind: "http" }, { class: "interactive" });
  await until("a user wakes it", () => worker.closed.length === 7);
});

test.each([
  { aging: { agingMs: 5 }, says: /agingTime: must be >= 100 ms \(got 5\)/ },
  {
    aging: { weights: { a: 0 } },
    says: /weights\.a: must be a number from 0\.001 to 1000 \(got 0\)/,
  },
])("rejects $aging", ({ aging, says }) => {
  const queue = harness.open();
  expect(() => workOn(queue, () => ({ kind: "done" }), { fairness: aging })).toThrow(says);
});

test("tenants that have come and gone leave no fields behind", async () => {
  const queue = harness.open();
  const { fair } = queueNames(harness.prefix, CLUSTER, CONTROLLER);
  const worker = workOn(queue, () => ({ kind: "done" }));
  const keys = Array.from({ length: 1_000 }, (_, n) => inTenant(`tenant-${n}`, "only"));
  await requestMany(queue, keys, "event");
  await until("all have run", () => worker.closed.length === keys.length);
  await until("their flows are removed", async () => (await harness.redis.hlen(fair)) < 300);
  expect(worker.errors).toEqual([]);
});

test("a new base of tags keeps the order and the limit, also for jobs with the old base", async () => {
  const queue = harness.open();
  const names = queueNames(harness.prefix, CLUSTER, CONTROLLER);
  const prioritized = `${names.bullRoot}prioritized`;
  const order = () => harness.redis.zrange(prioritized, "0", "-1");
  const priorityOf = async (jobId: string) =>
    Number(await harness.redis.hget(`${names.bullRoot}${jobId}`, "priority"));
  await harness.redis.hset(names.fair, "v", 1_500_000);
  for (const tenant of ["a", "b"]) await requestMany(queue, numbered(tenant, 250), "event");
  await queue.request(inTenant("c", "slow"), { kind: "resync" }, { class: "background" });
  const before = await order();
  expect(await priorityOf(before[0] ?? "")).toBeGreaterThan(1_500_000);
  const step = () =>
    runScript(harness.redis, rebaseScript, {
      keys: { fair: names.fair },
      args: { hashes: names.keyRoot, bull: names.bullRoot, limit: 100, after: 1_000_000 },
    });
  expect(await step()).toBe(true);
  // A request that arrives during the move.
  await queue.request(inTenant("d", "meanwhile"), { kind: "http" }, { class: "interactive" });
  await until("the end of the rebase", async () => !(await step()));
  const after = await order();
  const meanwhile = after.indexOf(after.find((id) => !before.includes(id)) ?? "");
  expect(meanwhile).toBeLessThan(10);
  expect(after.toSpliced(meanwhile, 1)).toEqual(before);
  for (const id of after) expect(await priorityOf(id)).toBeLessThan(5_000);

  // A retry or a parked follow-up may have a place of the old base: it stays at the end until the next round.
  const late = after[3] ?? "";
  await harness.redis.zadd(prioritized, 1_500_000 * 2 ** 32, late);
  await harness.redis.hset(`${names.bullRoot}${late}`, "priority", 1_500_000);
  await until("the far end is mended", async () => !(await step()));
  expect(await priorityOf(late)).toBeLessThan(5_000);
  expect((await order()).indexOf(late)).toBeLessThan(10);
});
