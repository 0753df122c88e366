import type { ApiObject } from "@konverge/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Controller } from "../define/define-controller.ts";
import type { RequestSource } from "./request-source.ts";
import { runResync } from "./resync.ts";

const INTERVAL_MS = 60_000;

const POOL: ApiObject = { apiVersion: "v1", kind: "Pool", metadata: { name: "pool", uid: "u" } };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A resync of `size` objects, whose requests the test accepts. */
function start(size: number, failures = 0) {
  const objects = Array.from({ length: size }, (_, index): ApiObject => ({
    apiVersion: "v1",
    kind: "Pool",
    metadata: { name: `p${index}`, uid: `${index}` },
  }));
  const counts = { lists: 0, requests: 0, largest: 0 };
  let open: (() => void)[] = [];
  let failing = failures;
  const stopping = new AbortController();
  const reasons = new Set<string>();
  const errors: Error[] = [];
  const running = runResync({
    controller: { resyncMs: INTERVAL_MS } as Controller,
    store: {
      synced: Promise.resolve(),
      lastVersion: "1",
      list: () => ((counts.lists += 1), objects),
      get: () => undefined,
    },
    source: {
      resync: (_object, { reason }) => {
        reasons.add(reason);
        counts.requests += 1;
        return new Promise<void>((resolve) => {
          open.push(resolve);
          counts.largest = Math.max(counts.largest, open.length);
        });
      },
    } satisfies Pick<RequestSource, "resync"> as unknown as RequestSource,
    seen: () => ({}),
    incarnation: async () => {
      if (failing-- > 0) throw new Error("Redis is unavailable");
      return "same";
    },
    signal: stopping.signal,
    onError: (error) => errors.push(error),
    onLost: () => undefined,
    again: () => new Promise(() => undefined),
  }).catch((error: unknown) => error);
  /** Accepts the open requests, and returns how many there were. */
  const accept = async () => {
    const accepted = open;
    open = [];
    for (const resolve of accepted) resolve();
    await vi.advanceTimersByTimeAsync(0);
    return accepted.length;
  };
  const stop = async () => {
    stopping.abort(new Error("stopped"));
    await accept();
    await running;
  };
  return { counts, reasons, errors, accept, stop };
}

test.each([100, 1_000, 10_000])(
  "the first round of %d objects lists once and waits once per 128 objects",
  async (size) => {
    const { counts, reasons, accept, stop } = start(size);
    await vi.advanceTimersByTimeAsync(0);
    let waits = 0;
    while (counts.requests < size) {
      expect(await accept()).toBeLessThanOrEqual(128);
      waits += 1;
    }
    expect(waits).toBe(Math.ceil(size / 128) - 1);
    expect(counts).toEqual({ lists: 1, requests: size, largest: Math.min(size, 128) });
    expect([...reasons]).toEqual(["leadership acquired"]);
    await stop();
  },
);

test.each([
  [10, 10],
  [1_000, 1_000],
  [10_000, 625],
])("a later round of %d objects is spread over the interval in %d parts", async (size, parts) => {
  const { counts, reasons, accept, stop } = start(size);
  await vi.advanceTimersByTimeAsync(0);
  while (counts.requests < size) await accept();
  await accept();
  let used = 0;
  for (let part = 0; part < parts; part += 1) {
    expect(counts.requests).toBeLessThan(2 * size);
    await vi.advanceTimersByTimeAsync(Math.ceil(INTERVAL_MS / parts));
    if ((await accept()) > 0) used += 1;
  }
  // The third list belongs to the next round.
  expect([used, counts.requests, counts.lists]).toEqual([parts, 2 * size, 3]);
  expect([...reasons]).toEqual(["leadership acquired", "resync interval"]);
  await stop();
});

test("repeats the check for data loss until Redis answers, before the first request", async () => {
  const { counts, errors, stop } = start(3, 2);
  await vi.advanceTimersByTimeAsync(999);
  expect(counts.requests).toBe(0);
  await vi.advanceTimersByTimeAsync(1_001);
  expect([counts.requests, errors.length]).toEqual([3, 2]);
  await stop();
});

test("can be stopped at any time, and then rejects with the reason only", async () => {
  const LATENCY_MS = 3;
  const after = <T>(value: T) =>
    new Promise<T>((resolve) => void setTimeout(() => resolve(value), LATENCY_MS));
  const calls = new Set<string>();
  for (let stopAtMs = 0; stopAtMs < 20 * LATENCY_MS; stopAtMs += 1) {
    const stopping = new AbortController();
    let isSwept = false;
    let isResumed = false;
    let again = Promise.withResolvers<string>();
    const fire = () => {
      const { resolve } = again;
      again = Promise.withResolvers<string>();
      resolve("again");
    };
    setTimeout(fire, 2 * (stopAtMs % 5));
    const reason = new Error(`stopped at ${stopAtMs} ms`);
    let lookups = 0;
    let sweeping = 0;
    const call = <T>(name: string, value: T) => (calls.add(name), after(value));
    const result = runResync({
      controller: { resyncMs: INTERVAL_MS } as Controller,
      store: { synced: after(undefined), lastVersion: "1", list: () => [POOL], get: () => POOL },
      source: {
        resync: () => call("request", undefined),
      } satisfies Pick<RequestSource, "resync"> as unknown as RequestSource,
      seen: () => ({}),
      // Every lookup differs, so Redis is lost again and again.
      incarnation: () => call("incarnation", `${(lookups += 1)}`),
      progress: {
        follow: () => call("follow", undefined),
        resume: async (_incarnation, signal) => {
          await call("resume", undefined);
          signal.throwIfAborted();
          isResumed = stopAtMs % 2 === 0;
          return isResumed;
        },
        report: async (_incarnation, signal) => {
          if (signal.aborted) return;
          if (sweeping > 0 || !(isSwept || isResumed)) calls.add("report before a sweep");
          await call("report", undefined);
          signal.throwIfAborted();
        },
      },
      sweep: async () => {
        sweeping += 1;
        for (let page = 0; page < 3; page += 1) await call("sweep", undefined);
        sweeping -= 1;
        isSwept = true;
      },
      signal: stopping.signal,
      onError: (error) => expect.unreachable(error.message),
      onLost: () => calls.add("lost"),
      again: () => again.promise,
      checkMs: LATENCY_MS,
    }).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(stopAtMs);
    stopping.abort(reason);
    await vi.advanceTimersByTimeAsync(10 * LATENCY_MS);
    expect(await result).toBe(reason);
  }
  // The next leader does not sweep again, so a report implies that the sweep has ended.
  expect([...calls].toSorted()).toEqual([
    "incarnation",
    "lost",
    "report",
    "request",
    "resume",
    "sweep",
  ]);
});
