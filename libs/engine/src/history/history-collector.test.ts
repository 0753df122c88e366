import type { AttemptRecord } from "@konverge/records";
import { expect, test } from "vitest";
import { HistoryCollector, type WasteOptions } from "./history-collector.ts";

type Write = Partial<AttemptRecord["writes"][number]>;

const AT = "2026-01-01T00:07:30.000Z";
const MINUTE = Date.parse("2026-01-01T00:07:00.000Z") / 60_000;
const PLACE = { resource: "pools.x", namespace: "demo", name: "a" };
const POOL = { object: "pools.x/demo/a", controller: "pools", minute: MINUTE };
const NO_LOOP = { isLoop: false, isTakeoverAccepted: false };

const lost = { readVersion: "1", competingWriters: [], waitedMs: 0 };
const taken = [
  { manager: "hpa", path: "spec.size" },
  { manager: "hpa", path: "spec.image" },
];
const write = (over: Write = {}): Write => ({ ...PLACE, verb: "patch", conflicts: [], ...over });

function attempt(
  writes: readonly Write[],
  {
    conflicts = [],
    at = AT,
  }: { readonly conflicts?: readonly object[]; readonly at?: string } = {},
): AttemptRecord {
  return {
    key: "pools/default/pools.x/demo/a",
    controller: "pools",
    outcome: "done",
    startedAt: at,
    finishedAt: at,
    durationMs: 1,
    calls: { count: 1 },
    worker: "w",
    writes,
    conflicts,
  } as unknown as AttemptRecord;
}

/** The wasted writes of attempts. */
function wasteOf(
  records: readonly AttemptRecord[],
  options: Partial<WasteOptions> = {},
): ReturnType<HistoryCollector["take"]>["wasted"] {
  const collector = new HistoryCollector();
  for (const record of records) collector.add(record, 100, { ...NO_LOOP, ...options });
  return collector.take().wasted;
}

test("does not count writes without a competing writer as wasted", () => {
  expect(wasteOf([attempt([write(), write({ name: "b" })])])).toEqual([]);
});

test("counts each conflict of a write, and each that ended an attempt", () => {
  expect(wasteOf([attempt([write({ conflicts: [lost, lost] })])])).toEqual([
    { ...POOL, writes: 2 },
  ]);
  expect(wasteOf([attempt([], { conflicts: [{ ...PLACE, ...lost }] })])).toEqual([
    { ...POOL, writes: 1 },
  ]);
});

test("counts a write once that takes several fields over, also in a loop", () => {
  const record = attempt([write({ fieldsTakenOver: taken })]);
  expect(wasteOf([record])).toEqual([{ ...POOL, writes: 1 }]);
  expect(wasteOf([record], { isLoop: true })).toEqual([{ ...POOL, writes: 1 }]);
  expect(wasteOf([attempt([write({ fieldsTakenOver: [] })])])).toEqual([]);
});

test("counts every write of a key in a loop", () => {
  expect(wasteOf([attempt([write(), write({ name: "b" })])], { isLoop: true })).toEqual([
    { ...POOL, writes: 1 },
    { ...POOL, object: "pools.x/demo/b", writes: 1 },
  ]);
});

test("counts no takeovers that are accepted, but the conflicts of these writes", () => {
  const accepted = { isTakeoverAccepted: true };
  expect(wasteOf([attempt([write({ fieldsTakenOver: taken })])], accepted)).toEqual([]);
  const contested = write({ fieldsTakenOver: taken, conflicts: [lost] });
  expect(wasteOf([attempt([contested])], accepted)).toEqual([{ ...POOL, writes: 1 }]);
});

test("counts writes to another cluster for that cluster, apart from an object with the same name", () => {
  const far = { cluster: "edge", conflicts: [lost], fieldsTakenOver: taken };
  const conflicts = [{ ...PLACE, ...lost, cluster: "edge" }];
  const collector = new HistoryCollector();
  collector.add(attempt([write(far), write({ conflicts: [lost] })], { conflicts }), 100, NO_LOOP);
  const { wasted, contention } = collector.take();
  const { object } = POOL;
  expect(wasted).toEqual([
    { ...POOL, cluster: "edge", writes: 3 },
    { ...POOL, writes: 1 },
  ]);
  expect(contention).toEqual([
    {
      object,
      cluster: "edge",
      conflicts: 2,
      pairs: taken.map((field) => ({ kind: "takeover", ...field, count: 1 })),
    },
    { object, conflicts: 1, pairs: [] },
  ]);
});

test("counts no write to another cluster for a loop, which it cannot cause", () => {
  expect(wasteOf([attempt([write({ cluster: "edge" })])], { isLoop: true })).toEqual([]);
});

test("adds up the writes of a minute, and starts again after they were taken", () => {
  const record = attempt([write({ fieldsTakenOver: taken })]);
  const next = attempt([write({ fieldsTakenOver: taken })], { at: "2026-01-01T00:08:00.000Z" });
  expect(wasteOf([record, record, next])).toEqual([
    { ...POOL, writes: 2 },
    { ...POOL, minute: MINUTE + 1, writes: 1 },
  ]);
  const collector = new HistoryCollector();
  collector.add(record, 100, NO_LOOP);
  collector.take();
  expect(collector.take().wasted).toEqual([]);
});

test("limits the objects, and still counts those that it has", () => {
  const records = Array.from({ length: 250 }, (_, at) =>
    attempt([write({ name: `p-${at}`, fieldsTakenOver: taken })]),
  );
  const wasted = wasteOf([...records, ...records]);
  expect(wasted).toHaveLength(200);
  expect(new Set(wasted.map(({ writes }) => writes))).toEqual(new Set([2]));
});

test("counts the durations of attempts that ran", () => {
  const collector = new HistoryCollector();
  const ran = { ...attempt([]), durationMs: 100 };
  collector.add(ran, 100, NO_LOOP);
  collector.add({ ...ran, outcome: "deferred" }, 100, NO_LOOP);
  const [{ counts } = { counts: {} }] = collector.take().rollups;
  const durations = Object.entries(counts).filter(([name]) => name.startsWith("duration."));
  expect(durations.map(([, count]) => count)).toEqual([1]);
  expect(counts).toMatchObject({ "outcome.done": 1, "outcome.deferred": 1 });
});

test("adds up the times of successful attempts by cause", () => {
  const collector = new HistoryCollector();
  const convergence = {
    queue: 5,
    pause: 0,
    outage: 0,
    retry: 0,
    contention: 0,
    token: 0,
    lane: 0,
    handler: 7,
  };
  for (const slo of ["good", "bad"] as const) {
    collector.add(attempt([]), 100, { ...NO_LOOP, convergence, slo });
  }
  collector.add(attempt([]), 100, NO_LOOP);
  const [{ counts } = { counts: {} }] = collector.take().rollups;
  const times = Object.entries(counts).filter(([name]) => /^(?:convergence|slo)\./.test(name));
  expect(Object.fromEntries(times)).toEqual({
    "convergence.queue": 10,
    "convergence.handler": 14,
    "slo.good": 1,
    "slo.bad": 1,
    "slo.bad.queue": 5,
    "slo.bad.handler": 7,
  });
});
