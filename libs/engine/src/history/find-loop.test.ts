import type { AttemptRecord } from "@konverge/records";
import { expect, test } from "vitest";
import { findLoop, OWN_WRITES_IN_A_ROW, REQUEUES_IN_A_ROW } from "./find-loop.ts";

type Trigger = AttemptRecord["triggers"][number];
const watch = (resourceVersion: number): Trigger => ({
  kind: "watch",
  by: "watch pools",
  resourceVersion: String(resourceVersion),
});
const write = (toVersion: number, over = {}): AttemptRecord["writes"][number] => ({
  verb: "patch",
  resource: "pools.x",
  name: "a",
  subresource: "status",
  toVersion: String(toVersion),
  patch: { status: { seen: toVersion } },
  conflicts: [],
  ...over,
});
const record = (over: Partial<AttemptRecord>): AttemptRecord => ({
  id: "k#1",
  key: "k",
  controller: "pools",
  attempt: 1,
  worker: "w",
  triggers: [],
  requestedAt: "",
  startedAt: "",
  finishedAt: "",
  durationMs: 1,
  waits: { queueMs: 0, rateLimitMs: 0, laneMs: 0, conflictMs: 0, backoffMs: 0 },
  outcome: "done",
  writes: [],
  conflicts: [],
  calls: { count: 1, durationMs: 1 },
  ...over,
});

/** Newest first: each is started by what the one before wrote. */
const chain = (length: number, each: (at: number) => Partial<AttemptRecord> = () => ({})) =>
  Array.from({ length }, (_, at) =>
    record({ triggers: [watch(100 + at)], writes: [write(101 + at)], ...each(at) }),
  ).toReversed();

/** One more than counted, since the first was started by somebody else. */
const LOOP = OWN_WRITES_IN_A_ROW + 1;

test("finds a loop in a chain of own writes, with its fields", () => {
  expect(findLoop(chain(LOOP))).toEqual({
    kind: "selfTriggered",
    hint: "own_status_trigger",
    count: OWN_WRITES_IN_A_ROW,
    paths: ["pools.x/status status.seen"],
  });
});

test("finds a loop of spec writes and of child writes", () => {
  const spec = chain(LOOP, (at) => ({
    writes: [write(101 + at, { subresource: undefined, patch: { spec: { size: at } } })],
  }));
  expect(findLoop(spec)).toMatchObject({
    hint: "own_write_trigger",
    paths: ["pools.x spec.size"],
  });
  const child = chain(LOOP, (at) => ({
    triggers: [{ kind: "owner", by: "watch Machine", version: String(100 + at) }],
    writes: [
      write(101 + at, {
        resource: "machines.x",
        name: "m",
        subresource: undefined,
        patch: undefined,
      }),
    ],
  }));
  expect(findLoop(child)).toMatchObject({ kind: "selfTriggered", hint: "own_write_trigger" });
});

test.each<[string, AttemptRecord[]]>([
  ["fewer in a row", chain(LOOP - 1)],
  ["the last one wrote nothing", chain(LOOP, (at) => (at === LOOP - 1 ? { writes: [] } : {}))],
  [
    "somebody else's change in between",
    chain(LOOP, (at) => (at === 5 ? { triggers: [watch(105), watch(7)] } : {})),
  ],
  [
    "a person in between",
    chain(LOOP, (at) => (at === 5 ? { triggers: [watch(105), { kind: "http" }] } : {})),
  ],
  [
    "a person's annotation",
    chain(LOOP, (at) => (at === 5 ? { triggers: [{ ...watch(105), by: "annotation" }] } : {})),
  ],
  ["nothing", []],
])("no loop: %s", (_what, records) => {
  expect(findLoop(records)).toBeUndefined();
});

test("ignores timers and resyncs in between, and counts the triggers of deferred starts", () => {
  const records = chain(LOOP, (at) =>
    at === 5 ? { triggers: [watch(105), { kind: "schedule" }, { kind: "resync" }] } : {},
  );
  const putOff = records.flatMap((each) => [
    { ...each, triggers: [] },
    record({ outcome: "deferred", cause: "loop", triggers: each.triggers }),
  ]);
  expect(findLoop(records)).toMatchObject({ count: OWN_WRITES_IN_A_ROW });
  expect(findLoop(putOff)).toMatchObject({ count: OWN_WRITES_IN_A_ROW });
});

const polls = (length: number, over: Partial<AttemptRecord> = {}) =>
  Array.from({ length }, () =>
    record({
      outcome: "requeueAfter",
      afterMs: 1_000,
      versionBefore: "7",
      triggers: [{ kind: "schedule", by: "timer" }],
      ...over,
    }),
  );

test("finds a loop of requeues without a change", () => {
  expect(findLoop(polls(REQUEUES_IN_A_ROW))).toMatchObject({
    kind: "requeue",
    hint: "endless_requeue",
    count: REQUEUES_IN_A_ROW,
  });
});

test.each<[string, AttemptRecord[]]>([
  ["fewer", polls(REQUEUES_IN_A_ROW - 1)],
  ["polling", polls(REQUEUES_IN_A_ROW, { afterMs: 10_000 })],
  ["with a write", polls(REQUEUES_IN_A_ROW, { writes: [write(1)] })],
  ["with changes of the object", [...polls(10), ...polls(10, { versionBefore: "8" })]],
  ["with changes of others", polls(REQUEUES_IN_A_ROW, { triggers: [watch(9)] })],
])("no loop of asking: %s", (_what, records) => {
  expect(findLoop(records)).toBeUndefined();
});
