import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { GateCall } from "./gate.ts";
import { createLocalGate, sleepMs } from "./local-gate.ts";

const call: GateCall = { verb: "get", resource: "pods", priority: "event" };

/** A clock that the test advances; sleepers wake in order. */
function fakeTime() {
  let nowMs = 0;
  const sleepers: { readonly atMs: number; readonly wake: () => void }[] = [];
  return {
    clock: () => nowMs,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        sleepers.push({ atMs: nowMs + ms, wake: resolve });
        signal?.addEventListener("abort", () => reject(signal.reason as Error));
      }),
    async advance(ms: number) {
      // Pending calls settle before time advances.
      await new Promise((resolve) => void setImmediate(resolve));
      const endMs = nowMs + ms;
      // Each sleeper wakes exactly on time.
      for (;;) {
        const due = sleepers.filter(({ atMs }) => atMs > nowMs && atMs <= endMs);
        nowMs = Math.min(endMs, ...due.map(({ atMs }) => atMs));
        for (const sleeper of sleepers) if (sleeper.atMs <= nowMs) sleeper.wake();
        await new Promise((resolve) => void setImmediate(resolve));
        if (nowMs === endMs) return;
      }
    },
  };
}

test("admits the burst immediately and the rest at the rate", async () => {
  const time = fakeTime();
  const gate = createLocalGate({ ratePerSecond: 10, burst: 2, ...time });
  const waits: number[] = [];
  for (let i = 0; i < 4; i++) void gate.admit(call).then(({ waitedMs }) => waits.push(waitedMs));
  await time.advance(0);
  expect(waits).toEqual([0, 0]);
  await time.advance(99);
  expect(waits).toEqual([0, 0]);
  await time.advance(1);
  expect(waits).toEqual([0, 0, 100]);
  await time.advance(100);
  expect(waits).toEqual([0, 0, 100, 200]);
});

test("never admits more than rate * T + burst for any arrivals (P5)", async () => {
  const arrivals = fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(arrivals, fc.integer({ min: 1, max: 8 }), async (pausesMs, burst) => {
      const time = fakeTime();
      const gate = createLocalGate({ ratePerSecond: 20, burst, ...time });
      const admitted: number[] = [];
      for (const pauseMs of pausesMs) {
        await time.advance(pauseMs);
        void gate.admit(call).then(() => admitted.push(time.clock()));
      }
      for (let ticks = 0; admitted.length < pausesMs.length && ticks < 400; ticks++)
        await time.advance(10);
      expect(admitted).toHaveLength(pausesMs.length);
      admitted.forEach((from, first) => {
        admitted.slice(first).forEach((to, further) => {
          expect(further + 1).toBeLessThanOrEqual(((to - from) * 20) / 1_000 + burst);
        });
      });
    }),
    { numRuns: 20 },
  );
});

test("rejects an aborted call with the caller's reason", async () => {
  const time = fakeTime();
  const gate = createLocalGate({ ratePerSecond: 1, burst: 1, ...time });
  const reason = new Error("lease lost");
  await gate.admit(call);
  const controller = new AbortController();
  const waiting = gate.admit(call, { signal: controller.signal });
  controller.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  await expect(gate.admit(call, { signal: controller.signal })).rejects.toBe(reason);
});

test.each([
  [0, 1],
  [-1, 1],
  [NaN, 1],
  [10, 0.5],
  [10, NaN],
  [Infinity, Infinity],
])("rejects rate %d with burst %d at construction", (ratePerSecond, burst) => {
  expect(() => createLocalGate({ ratePerSecond, burst })).toThrow(RangeError);
});

test("sleepMs rejects with the signal's reason, before and during the sleep", async () => {
  const reason = new Error("stop");
  await expect(sleepMs(60_000, AbortSignal.abort(reason))).rejects.toBe(reason);
  const controller = new AbortController();
  const sleeping = sleepMs(60_000, controller.signal);
  controller.abort(reason);
  await expect(sleeping).rejects.toBe(reason);
});

test("sleepMs does not return early for times beyond the timer limit", async () => {
  const controller = new AbortController();
  let woke = false;
  const sleeping = sleepMs(2 ** 40, controller.signal).then(() => (woke = true));
  await sleepMs(20);
  expect(woke).toBe(false);
  controller.abort(new Error("enough"));
  await expect(sleeping).rejects.toThrow("enough");
});
