import { createGaugeStore, type GaugeSample, type GaugeStore } from "@konverge/queue";
import { expect, test } from "vitest";
import { historyNames } from "../../../libs/queue/src/history/history-names.ts";
import { useQueues } from "./queue-harness.ts";

const harness = useQueues();

const openStore = (): GaugeStore => createGaugeStore(harness.redis, harness.prefix, "default");

type ControllerSample = GaugeSample["controllers"][number];

function sampleOf(
  controller: Partial<ControllerSample>,
  rest: Partial<GaugeSample> = {},
): GaugeSample {
  const name = "node-pool";
  const idle = { name, waiting: 0, oldestMs: 0, isPaused: false, version: "a" };
  return {
    controllers: [{ ...idle, ...controller }],
    calls: {},
    waitingCalls: 0,
    served: new Map(),
    isMemoryHigh: false,
    ...rest,
  };
}

/** Adds up what all minutes say about the controller, because a test may cross a minute. */
async function readAll(store: GaugeStore) {
  const minutes = await store.read(5);
  const rows = minutes.flatMap(({ controllers }) => controllers.get("node-pool") ?? []);
  return {
    minutes,
    rows,
    sum: (of: "calls" | "deferred") => minutes.reduce((n, m) => n + m[of], 0),
  };
}

test("remembers since when the memory of Redis has been high", async () => {
  const store = openStore();
  await store.note(sampleOf({}, { isMemoryHigh: true }));
  const { memoryHighMs = 0 } = await store.known();
  expect(memoryHighMs).toBeGreaterThan(Date.now() - 60_000);
  await store.note(sampleOf({}, { isMemoryHigh: true }));
  expect((await store.known()).memoryHighMs).toBe(memoryHighMs);
  await store.note(sampleOf({}));
  expect((await store.known()).memoryHighMs).toBeUndefined();
});

test("keeps the fields of a newer version that samples the cluster as well", async () => {
  const store = openStore();
  await store.note(sampleOf({}, { isMemoryHigh: true }));
  const { lastSample } = historyNames(harness.prefix, "default");
  const read = async () =>
    JSON.parse((await harness.redis.get(lastSample)) ?? "{}") as Record<string, unknown>;
  await harness.redis.set(lastSample, JSON.stringify({ ...(await read()), later: { a: 1 } }));
  await store.note(sampleOf({}));
  expect(await read()).toMatchObject({ later: { a: 1 }, versions: { "node-pool": "a" } });
});

test("a minute keeps the highest length and age of its samples", async () => {
  const store = openStore();
  expect(await store.read(5)).toEqual([]);
  for (const [waiting, oldestMs] of [
    [3, 100],
    [40, 70_000],
    [1, 20],
  ] as const) {
    await store.note(sampleOf({ waiting, oldestMs }));
  }
  const { rows } = await readAll(store);
  expect(Math.max(...rows.map(({ waiting }) => waiting))).toBe(40);
  expect(Math.max(...rows.map(({ oldestMs }) => oldestMs))).toBe(70_000);
});

test("counts the calls between samples, also after a worker started again", async () => {
  const store = openStore();
  const note = (admitted: number, deferred: number) =>
    store.note(sampleOf({}, { calls: { "w-1": { admitted, deferred } } }));
  // The calls before the first sample were made at an unknown time.
  await note(1_000, 10);
  await note(1_040, 12);
  await note(5, 0);
  await note(15, 1);
  const { sum } = await readAll(store);
  expect(sum("calls")).toBe(50);
  expect(sum("deferred")).toBe(3);
});

test("stores a version in the minute in which it changed, and the most severe state", async () => {
  const store = openStore();
  const guard = { allowed: 500, limit: 500 };
  await store.note(sampleOf({ version: "a" }, { guard: { ...guard, mode: "closed" } }));
  await store.note(sampleOf({ version: "a" }, { guard: { ...guard, mode: "open" } }));
  await store.note(sampleOf({ version: "a and b" }, { guard: { ...guard, mode: "halfOpen" } }));
  await store.note(sampleOf({ version: "" }, { guard: { ...guard, mode: "halfOpen" } }));
  const { minutes, rows } = await readAll(store);
  expect(rows.flatMap(({ version }) => version ?? [])).toEqual(["a and b"]);
  expect(minutes.map(({ breaker }) => breaker)).toContain("open");
});

test("one process samples a cluster at a time", async () => {
  expect(await openStore().claim(60_000)).toBe(true);
  expect(await openStore().claim(60_000)).toBe(false);
});

test("remembers when a queue was last served, and since when by several versions", async () => {
  const store = openStore();
  expect((await store.known()).served).toEqual(new Map());
  const note = async (served: Readonly<Record<string, number>>) => {
    const beforeMs = Date.now();
    await store.note(sampleOf({}, { served: new Map(Object.entries(served)) }));
    return { beforeMs, found: (await store.known()).served };
  };
  const first = await note({ "node-pool": 1, certificates: 2 });
  expect(first.found.get("node-pool")?.seenMs).toBeGreaterThanOrEqual(first.beforeMs);
  expect(first.found.get("node-pool")?.mixedMs).toBeUndefined();
  const mixedMs = first.found.get("certificates")?.mixedMs;
  expect(mixedMs).toBeGreaterThanOrEqual(first.beforeMs);

  const second = await note({ "node-pool": 2, certificates: 3 });
  expect(second.found.get("certificates")).toEqual({ seenMs: expect.any(Number), mixedMs });
  expect(second.found.get("node-pool")?.mixedMs).toBeGreaterThanOrEqual(second.beforeMs);

  const third = await note({ certificates: 1 });
  expect(third.found.get("certificates")?.mixedMs).toBeUndefined();
  expect(third.found.get("node-pool"), "no worker is left").toEqual(second.found.get("node-pool"));
});
