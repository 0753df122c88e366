import type { AttemptRecord } from "@konverge/records";
import type { Trigger } from "@konverge/core";
import type { AttemptLease } from "@konverge/queue";
import { expect, test } from "vitest";
import { LoopThrottle } from "./loop-throttle.ts";

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

function open(loopProtection: "throttle" | "report" = "throttle") {
  const clock = { nowMs: 1_000_000 };
  const ended: string[] = [];
  const throttle = new LoopThrottle({
    workerId: "w",
    loopProtection,
    readRecords: async () => [ran()],
    onEnded: (key) => ended.push(key),
    now: () => clock.nowMs,
    random: () => 0,
  });
  return { throttle, clock, ended };
}
const OWN = { kind: "selfTriggered", count: 10, paths: [], managers: [] } as const;
const FLIP = { kind: "ownershipFlip", count: 3, paths: ["spec.size"], managers: ["hpa"] } as const;

test("reads no records of a healthy key", () => {
  expect(open().throttle.putOffMs(attempt(foreign))).toBe(0);
});

test("delays self-triggered attempts, doubling up to one minute", async () => {
  const { throttle, clock } = open();
  throttle.start(KEY, OWN);
  const waits: number[] = [];
  for (let times = 0; times < 8; times++) {
    const waitMs = await throttle.putOffMs(attempt(echo));
    waits.push(waitMs);
    clock.nowMs += waitMs;
    expect(throttle.putOffMs(attempt())).toBe(0);
    throttle.ended(KEY, ran());
  }
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
});

test("delays nothing if loops are only reported", () => {
  const { throttle } = open("report");
  throttle.start(KEY, OWN);
  expect(throttle.putOffMs(attempt(echo))).toBe(0);
  expect(throttle.stateOf(KEY)).toMatchObject({ ...OWN, protection: "report" });
});

test.each<[string, Trigger]>([
  ["a change that is not ours", foreign],
  ["a person over HTTP", { kind: "http" }],
  ["a person by annotation", { ...echo, by: "annotation" }],
])("%s does not wait, and ends it", async (_what, trigger) => {
  const { throttle, ended } = open();
  throttle.start(KEY, OWN);
  expect(await throttle.putOffMs(attempt(echo, trigger))).toBe(0);
  expect(ended).toEqual([KEY]);
  expect(throttle.stateOf(KEY)).toBeUndefined();
});

test("an external change ends the throttling even if the start is due", async () => {
  const { throttle, clock, ended } = open();
  throttle.start(KEY, { ...OWN, kind: "requeue" });
  clock.nowMs += 5_000;
  expect(throttle.putOffMs(attempt({ kind: "schedule" }))).toBe(0);
  expect(await throttle.putOffMs(attempt(echo))).toBe(0);
  expect(ended).toEqual([]);
  expect(await throttle.putOffMs(attempt({ kind: "schedule" }, foreign))).toBe(0);
  expect(ended).toEqual([KEY]);
});

test("an attempt without a write ends the throttling", () => {
  const { throttle, ended } = open();
  throttle.start(KEY, OWN);
  throttle.ended(KEY, ran({ writes: [] }));
  expect(ended).toEqual([KEY]);
});

test("during contention external changes wait, user requests do not, and only idle time ends the throttling", async () => {
  const { throttle, clock, ended } = open();
  throttle.start(KEY, FLIP);
  expect(await throttle.putOffMs(attempt(foreign))).toBe(1_000);
  throttle.ended(
    KEY,
    ran({ writes: [{ fieldsTakenOver: [{ manager: "hpa", path: "spec.size" }] }] }),
  );
  expect(await throttle.putOffMs(attempt(foreign))).toBe(2_000);
  throttle.ended(KEY, ran({ writes: [] }));
  expect(ended).toEqual([]);
  clock.nowMs += 602_001;
  throttle.takeChanges();
  expect(ended).toEqual([KEY]);
});

test("shares loops between workers and keeps newer local changes", () => {
  const one = open().throttle;
  const { throttle: two } = open();
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

test("resends a loop state that failed to send", () => {
  const { throttle } = open();
  throttle.start(KEY, OWN);
  const untold = throttle.takeChanges();
  throttle.putBack(untold);
  throttle.learn(new Map());
  expect(throttle.stateOf(KEY)).toMatchObject(OWN);
});
