import { randomInt } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeEach, expect, test, vi } from "vitest";
import { openGuardControl, openLimits, type OpenLimits } from "@konverge/guard";
import { until } from "../../support/until.ts";
import { limitsRoot } from "../../../libs/guard/src/limits/limit-names.ts";
import { PATIENT_MS } from "../../support/patient.ts";

const url = process.env["REDIS_URL"] ?? "";
const redis = new Redis(url, { replyMapping: "legacy" });
afterAll(() => redis.quit());

let prefix: string;
let errors: Error[];
let woken: string[];
let limits: OpenLimits;
beforeEach(() => {
  prefix = `limit-keys-${process.pid}-${randomInt(1e9)}`;
  errors = [];
  woken = [];
  limits = openLimits({
    redis: { url, deadlineMs: PATIENT_MS },
    prefix,
    limits: { api: { rate: 10, concurrency: 1 } },
    workerId: "a",
    async wake(waiter) {
      for (let trip = 0; trip < 5; trip += 1) await redis.ping();
      woken.push(waiter);
      return !waiter.startsWith("ended");
    },
    onError: (error) => errors.push(error),
  });
});
afterEach(() => vi.useRealTimers());

const take = (waiter: string, key: string) =>
  limits.take({ name: "api", key, waiter, inPlaceMs: 0, signal: new AbortController().signal });

test("everything that a limit stores expires, except the names of limits", async () => {
  await limits.configure();
  for (const key of ["one", "two"]) {
    await take("first", key);
    await take("second", key);
  }
  await limits.close();
  const names = await redis.keys(`${prefix}:*`);
  expect(names.length).toBeGreaterThan(8);
  const leftMs = await Promise.all(names.map((name) => redis.pttl(name)));
  expect(names.filter((_, at) => leftMs[at] === -1)).toEqual([limitsRoot(prefix)]);
});

test("calls the next waiter at once if one no longer waits", async () => {
  await limits.configure();
  const held = await take("holder", "one");
  const ended = Array.from({ length: 100 }, (_, n) => `ended-${n}`);
  for (const waiter of [...ended, "live"]) await take(waiter, "one");
  if (held.kind === "held") held.permit.release();
  // Each of them would have 2 s to return.
  await until("the live one is called", () => woken.includes("live"));
  expect(woken).toEqual([...ended, "live"]);
  await limits.close();
});

test("lists a configured limit again after its name was removed", async () => {
  await limits.configure();
  // As by a reader that has found no rules just before they were stored.
  await redis.srem(limitsRoot(prefix), "api");
  await limits.configure();
  await limits.close();
  const control = openGuardControl({ redis: { url, deadlineMs: PATIENT_MS }, prefix });
  const views = await control.limits();
  await control.close();
  expect(views).toMatchObject([{ name: "api" }]);
});

test("a release at the end wakes a waiter, and Redis is not asked after it", async () => {
  const taken = await take("first", "");
  await take("second", "");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  if (taken.kind === "held") taken.permit.release();
  await limits.close();
  expect(woken).toEqual(["second"]);
  await vi.advanceTimersByTimeAsync(10_000);
  vi.useRealTimers();
  await redis.ping();
  expect(errors).toEqual([]);
});
