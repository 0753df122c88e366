import { afterEach, expect, test, vi } from "vitest";
import { AttemptCancelledError, createLeaseKeeper, type LeaseKeeper } from "./lease-keeper.ts";

const LEASE_MS = 1_000;
let current: LeaseKeeper | undefined;

function start(renewals: boolean[] = []): { keeper: LeaseKeeper; pass: (ms: number) => void } {
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
  return { keeper, pass };
}
afterEach(() => {
  current?.close();
  vi.useRealTimers();
});
const lease = (jobId: string) => ({ id: `key-${jobId}`, jobId, epoch: 1 });

test("P8: aborts an attempt by the local clock if its lease was not renewed", async () => {
  const { keeper, pass } = start();
  const [renewed, silent] = [keeper.hold(lease("1"), 0), keeper.hold(lease("2"), 0)];
  pass(600);
  await keeper.renewed(["1", "unknown"]);
  pass(600);
  expect(renewed.controller.signal.aborted).toBe(false);
  expect(silent.controller.signal.reason).toMatchObject({ code: "cancelled", reason: "leaseLost" });
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
