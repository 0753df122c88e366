import { afterEach, expect, test, vi } from "vitest";
import { AttemptCancelledError, createLeaseKeeper, type LeaseKeeper } from "./lease-keeper.ts";

const LEASE_MS = 1_000;
let current: LeaseKeeper | undefined;

function start(renewals: boolean[] = []): {
  keeper: LeaseKeeper;
  pass: (ms: number) => void;
  suspend: (ms: number) => void;
} {
  vi.useFakeTimers();
  let nowMs = 0;
  const keeper = createLeaseKeeper({
    leaseMs: LEASE_MS,
    renew: async (leases) => leases.map((_, index) => renewals[index] ?? true),
    clock: () => nowMs,
  });
  const pass = (ms: number) => {
    nowMs += ms;
    vi.advanceTimersByTime(ms);
  };
  current = keeper;
  return { keeper, pass, suspend: (ms) => void (nowMs += ms) };
}
afterEach(() => {
  current?.close();
  vi.useRealTimers();
});
const lease = (jobId: string) => ({ id: `key-${jobId}`, jobId, epoch: 1, owner: "o" });

test("P8: aborts an attempt by the local clock if its lease was not renewed", async () => {
  const { keeper, pass } = start();
  const [renewed, silent] = [keeper.hold(lease("1"), 0), keeper.hold(lease("2"), 0)];
  pass(600);
  await keeper.renewed(["1", "unknown"]);
  pass(600);
  expect(renewed.controller.signal.aborted).toBe(false);
  expect(silent.controller.signal.reason).toMatchObject({ code: "cancelled", reason: "leaseLost" });
});

test("P8: aborts 5 % before the lease ends, to the millisecond, also if it was renewed", async () => {
  const { keeper, pass } = start();
  const first = keeper.hold(lease("1"), 0);
  pass(17);
  const second = keeper.hold(lease("2"), 17);
  pass(483);
  await keeper.renewed(["2"]);
  pass(449);
  expect(first.controller.signal.aborted).toBe(false);
  pass(1);
  expect([first, second].map(({ controller }) => controller.signal.aborted)).toEqual([true, false]);
  pass(499);
  expect(second.controller.signal.aborted).toBe(false);
  pass(1);
  expect(second.controller.signal.aborted).toBe(true);
});

test("P8: after a suspension, a check aborts before any timer runs", () => {
  const { keeper, suspend } = start();
  const held = keeper.hold(lease("1"), 0);
  suspend(LEASE_MS);
  expect(held.controller.signal.aborted).toBe(false);
  keeper.check(held);
  expect(held.controller.signal.reason).toMatchObject({ reason: "leaseLost" });
});

test("one timer serves all leases, and none is left without a lease", () => {
  const { keeper, pass } = start();
  const many = Array.from({ length: 100 }, (_, index) => keeper.hold(lease(`${index}`), 0));
  expect(vi.getTimerCount()).toBe(1);
  for (const each of many) keeper.release(each);
  pass(LEASE_MS);
  expect(vi.getTimerCount()).toBe(0);
});

test("P8: aborts immediately if another epoch has the lease or the lock is lost", async () => {
  const { keeper } = start([false]);
  const [taken, lost] = [keeper.hold(lease("1"), 0), keeper.hold(lease("2"), 0)];
  await keeper.renewed(["1"]);
  keeper.lost(["2", "unknown"]);
  expect([taken, lost].map(({ controller }) => controller.signal.aborted)).toEqual([true, true]);
});

test("ignores attempts that have ended", async () => {
  const { keeper, pass } = start([false]);
  const ended = keeper.hold(lease("1"), 0);
  keeper.release(ended);
  await keeper.renewed(["1"]);
  keeper.lost(["1"]);
  pass(LEASE_MS * 2);
  expect(ended.controller.signal.aborted).toBe(false);
});

test("abortAll also aborts attempts that begin later", () => {
  const { keeper } = start();
  const reason = new AttemptCancelledError("shutdown", "the worker is stopping");
  keeper.abortAll(reason);
  expect(keeper.hold(lease("1"), 0).controller.signal.reason).toBe(reason);
});
