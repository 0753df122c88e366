import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FencedError } from "../store/run-journal-store.ts";
import type { Heartbeat } from "../store/run-record.ts";
import { Heartbeats, type HeartbeatsOptions } from "./heartbeats.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

async function open(options: Partial<HeartbeatsOptions> = {}) {
  const stored: (Heartbeat | undefined)[] = [];
  const ends: Error[] = [];
  const heartbeats = new Heartbeats({
    step: "s",
    attempt: 1,
    timeoutMs: 30_000,
    nowMs: () => performance.now(),
    check: () => undefined,
    store: async (beat) => void stored.push(beat),
    ...options,
  });
  await heartbeats.begin();
  heartbeats.onEnd((reason) => {
    ends.push(reason);
    heartbeats.end();
  });
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  return { heartbeats, stored, ends, pass };
}

test("heartbeats of one interval are stored as one, the last", async () => {
  const { heartbeats, stored, pass } = await open();
  expect(stored).toEqual([undefined]);
  for (let at = 1; at <= 1_000; at += 1) heartbeats.beat(at);
  await pass(4_999);
  expect(stored).toEqual([undefined]);
  await pass(1);
  expect(stored).toMatchObject([undefined, { progress: 1_000 }]);
  await pass(20_000);
  expect(stored).toHaveLength(2);
  heartbeats.beat(1_001);
  await pass(0);
  expect(stored.at(-1)).toMatchObject({ progress: 1_001 });
});

test("without a timeout nothing is stored at the begin, and nothing ends the attempt", async () => {
  const { heartbeats, stored, ends, pass } = await open({ timeoutMs: undefined as never });
  expect(stored).toEqual([]);
  heartbeats.beat("x");
  await pass(3_600_000);
  expect(stored).toHaveLength(1);
  expect(ends).toEqual([]);
});

test("a body that only shows that it is at work keeps its progress", async () => {
  const { heartbeats, ends, stored, pass } = await open();
  heartbeats.beat("half");
  for (let at = 0; at < 10; at += 1) {
    await pass(29_000);
    heartbeats.beat(undefined);
  }
  expect(ends).toEqual([]);
  expect(stored.at(-1)).toMatchObject({ progress: "half" });
  await pass(30_001);
  expect(ends).toMatchObject([{ code: "heartbeat_timeout" }]);
});

test("the attempt ends when no heartbeat can be stored for so long that the run may be taken over", async () => {
  let isAway = false;
  const never = new Promise<never>(() => undefined);
  const { heartbeats, ends, pass } = await open({
    store: async () => (isAway ? await never : undefined),
  });
  isAway = true;
  for (let at = 0; at < 30; at += 1) {
    await pass(1_000);
    heartbeats.beat(at);
  }
  expect(ends).toEqual([]);
  await pass(1_000);
  expect(ends).toMatchObject([
    { code: "heartbeat_timeout", message: expect.stringContaining("could be stored") as string },
  ]);
});

test("P8: the refusal of a heartbeat ends the attempt; another error does not", async () => {
  let error: Error | undefined = new Error("READONLY");
  let calls = 0;
  const { heartbeats, ends, pass } = await open({
    store: async () => {
      calls += 1;
      if (calls > 1 && error !== undefined) throw error;
    },
  });
  await pass(5_000);
  heartbeats.beat(1);
  await pass(0);
  expect(ends).toEqual([]);
  error = new FencedError("taken over");
  heartbeats.beat(2);
  await pass(5_000);
  expect(ends).toEqual([error]);
  heartbeats.beat(3);
  await pass(60_000);
  expect(calls).toBe(3);
});
