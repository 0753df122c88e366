import type { AttemptRecord } from "@konverge/records";
import type { Trigger } from "@konverge/core";
import type { AttemptLease } from "@konverge/queue";
import { expect, test } from "vitest";
import { createLoopBrake } from "./loop-brake.ts";

const KEY = "pools/default/pools.x/default/a";
const attempt = (...triggers: Trigger[]) => ({ id: KEY, triggers }) as unknown as AttemptLease;
const ran = (over: object = {}) =>
  ({
    outcome: "done",
    writes: [{ toVersion: "5" }],
    triggers: [],
    ...over,
  }) as unknown as AttemptRecord;
const echo: Trigger = { kind: "watch", by: "watch pools", resourceVersion: "5" };
const foreign: Trigger = { kind: "watch", by: "watch pools", resourceVersion: "6" };

function open(loops: "slow" | "tell" = "slow") {
  const clock = { nowMs: 1_000_000 };
  const ended: string[] = [];
  const brake = createLoopBrake({
    workerId: "w",
    loops,
    readRecords: async () => [ran()],
    onEnded: (key) => ended.push(key),
    now: () => clock.nowMs,
    random: () => 0,
  });
  return { brake, clock, ended };
}
const OWN = { kind: "ownWrites", count: 10, paths: [], managers: [] } as const;
const FLIP = { kind: "flip", count: 3, paths: ["spec.size"], managers: ["hpa"] } as const;

test("a key that is in order is never looked at", () => {
  expect(open().brake.putOffMs(attempt(foreign))).toBe(0);
});

test("echoes wait, longer each time, up to a minute", async () => {
  const { brake, clock } = open();
  brake.start(KEY, OWN);
  const waits: number[] = [];
  for (let times = 0; times < 8; times++) {
    const waitMs = await brake.putOffMs(attempt(echo));
    waits.push(waitMs);
    clock.nowMs += waitMs;
    expect(brake.putOffMs(attempt())).toBe(0);
    brake.ended(KEY, ran());
  }
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
});

test("where loops are only told, nothing waits", () => {
  const { brake } = open("tell");
  brake.start(KEY, OWN);
  expect(brake.putOffMs(attempt(echo))).toBe(0);
  expect(brake.stateOf(KEY)).toMatchObject(OWN);
});

test.each<[string, Trigger]>([
  ["a change that is not ours", foreign],
  ["a person over HTTP", { kind: "http" }],
  ["a person by annotation", { ...echo, by: "annotation" }],
])("%s does not wait, and ends it", async (_what, trigger) => {
  const { brake, ended } = open();
  brake.start(KEY, OWN);
  expect(await brake.putOffMs(attempt(echo, trigger))).toBe(0);
  expect(ended).toEqual([KEY]);
  expect(brake.stateOf(KEY)).toBeUndefined();
});

test("a change that is not ours ends it also when the key may start anyway", async () => {
  const { brake, clock, ended } = open();
  brake.start(KEY, { ...OWN, kind: "requeue" });
  clock.nowMs += 5_000;
  expect(brake.putOffMs(attempt({ kind: "schedule" }))).toBe(0);
  expect(await brake.putOffMs(attempt(echo))).toBe(0);
  expect(ended).toEqual([]);
  expect(await brake.putOffMs(attempt({ kind: "schedule" }, foreign))).toBe(0);
  expect(ended).toEqual([KEY]);
});

test("an attempt that wrote nothing ends it", () => {
  const { brake, ended } = open();
  brake.start(KEY, OWN);
  brake.ended(KEY, ran({ writes: [] }));
  expect(ended).toEqual([KEY]);
});

test("in a fight foreign changes wait, a person does not, and only silence ends it", async () => {
  const { brake, clock, ended } = open();
  brake.start(KEY, FLIP);
  expect(await brake.putOffMs(attempt(foreign))).toBe(1_000);
  brake.ended(KEY, ran({ writes: [{ taken: [{ manager: "hpa", path: "spec.size" }] }] }));
  expect(await brake.putOffMs(attempt(foreign))).toBe(2_000);
  brake.ended(KEY, ran({ writes: [] }));
  expect(ended).toEqual([]);
  clock.nowMs += 602_001;
  brake.takeChanges();
  expect(ended).toEqual([KEY]);
});

test("what one worker found all know, and what changed meanwhile is not forgotten", () => {
  const one = open().brake;
  const { brake: two } = open();
  one.start(KEY, OWN);
  const shared = one.takeChanges();
  const stored = new Map(
    [...shared].flatMap(([key, state]) => (state === undefined ? [] : [[key, state] as const])),
  );
  two.learn(stored);
  expect(two.stateOf(KEY)).toEqual(one.stateOf(KEY));
  two.ended(KEY, ran({ writes: [] }));
  two.learn(stored);
  expect(two.stateOf(KEY)).toBeUndefined();
  expect(two.takeChanges()).toEqual(new Map([[KEY, undefined]]));
  one.learn(new Map());
  expect(one.stateOf(KEY)).toBeUndefined();
});

test("what could not be told is told later", () => {
  const { brake } = open();
  brake.start(KEY, OWN);
  const untold = brake.takeChanges();
  brake.putBack(untold);
  brake.learn(new Map());
  expect(brake.stateOf(KEY)).toMatchObject(OWN);
});
