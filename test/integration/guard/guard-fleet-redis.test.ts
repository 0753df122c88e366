import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DEFAULT_GUARD_LIMITS, openGuardControl } from "@konverge/guard";
import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { guardKeys } from "../../../libs/guard/src/guard-keys.ts";
import {
  eventsOf,
  excessFrom,
  expectBound,
  Fleet,
  monotonicMs,
  startCountingServer,
  type CountingServer,
} from "./guard-harness.ts";
import { until } from "../../support/until.ts";

/** Failures of the guard's Redis. Uses a separate server, never the shared one. */

const RATE = 200;
const BURST = 120;
const TTL_MS = DEFAULT_GUARD_LIMITS.tokenTtlMs;
const WORKERS = 4;
const CLUSTER = "fleet";

let dir: string;
let redis: RunningRedis;
let admin: Redis;
let server: CountingServer;
let fleet: Fleet;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "konverge-guard-"));
  redis = await startRedis({ dir });
  admin = new Redis(redis.url);
  // These tests stop it; the workers must tolerate that.
  admin.on("error", () => undefined);
  server = await startCountingServer();
  fleet = new Fleet({
    redisUrl: redis.url,
    cluster: CLUSTER,
    serverUrl: server.url,
    limits: { ratePerSecond: RATE, burst: BURST, tokenTtlMs: TTL_MS },
  });
  await Promise.all(Array.from({ length: WORKERS }, () => fleet.start()));
});
afterEach(async () => {
  await fleet[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  admin.disconnect();
  await redis.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** Waits until no worker has tokens and the bucket is full: the worst time for a data loss. */
async function restUntilFull(): Promise<void> {
  fleet.order({ lanes: 0 });
  const { state } = guardKeys(fleet.prefix, CLUSTER);
  await until("the bucket is full", async () => {
    const [tatUs, [seconds = "", us = ""]] = await Promise.all([
      admin.hget(state, "tatUs"),
      admin.time() as unknown as Promise<string[]>,
    ]);
    return Number(tatUs) < Number(seconds) * 1e6 + Number(us);
  });
}
const work = () => fleet.order({ lanes: 10 });
const everybodyCalls = (sinceMs = monotonicMs()) =>
  until("every worker calls again", () =>
    fleet.workers.every(({ id }) =>
      server.calls.some((call) => call.worker === id && call.arrivedMs >= sinceMs),
    ),
  );
const errorsSince = (ms: number) =>
  fleet.workers.map((worker) => eventsOf(worker, "error").filter(({ atMs }) => atMs >= ms));
const everybodyFails = (sinceMs: number) =>
  until("every worker says that Redis fails", () =>
    errorsSince(sinceMs).every((errors) => errors.length > 0),
  );

const sentSince = (ms: number) => server.calls.filter((call) => call.allowedMs > ms);
const enoughToTell = (ms: number) =>
  until("as many calls as the bucket could hold", () => sentSince(ms).length >= 2 * BURST);
/** After a loss, at most the rate may pass: earlier leases expire after their ttl. */
const EMPTY = (RATE * TTL_MS) / 1_000 + 1;
const excessSince = (ms: number) =>
  excessFrom(
    ms,
    server.calls.map((call) => call.allowedMs),
    RATE,
  );

test("Redis crashes and returns with its data: no calls meanwhile, an empty bucket, then all workers resume", async () => {
  work();
  await everybodyCalls();
  await restUntilFull();
  const diedMs = monotonicMs();
  await redis.kill();
  // A worker that paused late may have leased its last token just before.
  const deadMs = monotonicMs() + TTL_MS;
  work();
  await everybodyFails(diedMs);
  expect(sentSince(deadMs)).toEqual([]);
  redis = await startRedis({ dir, port: redis.port });
  await everybodyCalls();
  await enoughToTell(diedMs);
  expect(excessSince(diedMs)).toBeLessThanOrEqual(EMPTY);
  expectBound(server.calls, { ratePerSecond: RATE, burst: BURST });
});

test("Redis loses all data after an outage: workers restore the limits, the bucket is empty, all workers resume", async () => {
  work();
  await everybodyCalls();
  // The workers have seen later generations than the empty Redis.
  await using control = openGuardControl({ redis: { url: redis.url }, prefix: fleet.prefix });
  const action = { by: "test", reason: "an earlier outage" };
  await control.isolate(CLUSTER, action);
  await until("every worker sees it", () =>
    fleet.workers.every((worker) => eventsOf(worker, "breaker").at(-1)?.mode === "isolated"),
  );
  await control.reset(CLUSTER, action);
  await everybodyCalls();
  await restUntilFull();
  const forgotMs = monotonicMs();
  await admin.flushall();
  work();
  await everybodyCalls(forgotMs);
  await enoughToTell(forgotMs);
  expect(excessSince(forgotMs)).toBeLessThanOrEqual(EMPTY);

  await admin.script("FLUSH");
  await everybodyCalls();
  expectBound(server.calls, { ratePerSecond: RATE, burst: BURST });
});

test("Redis is frozen and paused: the bound holds and no worker hangs", async () => {
  work();
  await everybodyCalls();
  for (const standStill of [
    async () => {
      process.kill(redis.pid, "SIGSTOP");
      return async () => process.kill(redis.pid, "SIGCONT");
    },
    async () => {
      // Ends by itself, because an explicit end would wait for it. Longer than a worker waits for an answer.
      await admin.client("PAUSE", 3_000, "ALL");
      return () => Promise.resolve();
    },
  ]) {
    const fromMs = monotonicMs();
    const goOn = await standStill();
    await everybodyFails(fromMs);
    await goOn();
    await everybodyCalls();
  }
  expectBound(server.calls, { ratePerSecond: RATE, burst: BURST });
});

test("Redis is full, then a replica: the bound holds and no worker hangs", async () => {
  work();
  await everybodyCalls();
  for (const [refuse, accept, word] of [
    [
      () => admin.config("SET", "maxmemory", "1"),
      () => admin.config("SET", "maxmemory", "0"),
      "OOM",
    ],
    // The primary does not exist: the replica keeps its data and rejects writes.
    [() => admin.replicaof("127.0.0.1", 1), () => admin.replicaof("NO", "ONE"), "READONLY"],
  ] as const) {
    const fromMs = monotonicMs();
    await refuse();
    await everybodyFails(fromMs);
    for (const [first] of errorsSince(fromMs)) expect(first?.message).toContain(word);
    await accept();
    await everybodyCalls();
  }
  expectBound(server.calls, { ratePerSecond: RATE, burst: BURST });
});
