import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startRedis } from "@konverge/infra-redis";
import { Queue, Worker } from "bullmq";
import { afterEach, expect, test } from "vitest";
import { hold } from "../integration/queue/queue-harness.ts";
import type { BullChildConfig } from "./bull-child.ts";
import { DEDUPED, shape, useBull } from "./bull.ts";
import { until } from "../support/until.ts";

/** Locks, stalled jobs, shutdown and crashes of Redis: BullMQ's behavior when a worker dies (P1, P8). */

const bull = useBull();
const CHILD = fileURLToPath(new URL("bull-child.ts", import.meta.url));
const quick = { lockDuration: 500, stalledInterval: 250 };
const children: ChildProcess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) await killed(child);
});

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

/** Starts a job in another process and kills the process. */
async function startAndKill(): Promise<void> {
  const { url, prefix, name } = bull;
  const child = spawn(
    process.execPath,
    [CHILD, JSON.stringify({ url, prefix, name } satisfies BullChildConfig)],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  children.push(child);
  await once(child.stdout, "data");
  await killed(child);
}

test("K1: a job whose process was killed runs again, then the later request", async () => {
  await bull.ask(0);
  await startAndKill();
  expect((await bull.ask(1)).id).toBe("1");
  bull.work(() => undefined, { ...quick, maxStalledCount: 1 });
  await until("both runs", () => bull.runs.length === 2);
  await bull.quiet();
  expect(shape(bull.runs)).toEqual([
    ["1", 0],
    ["2", 1],
  ]);
  expect(bull.mostAtOnce()).toBe(1);
  expect(await bull.queue.getJob("1")).toMatchObject({ stalledCounter: 1, attemptsMade: 1 });
  expect(await bull.dedupKeys()).toEqual([]);
});

test("K2: beyond maxStalledCount the job fails permanently; its follow-up still runs", async () => {
  await bull.ask(0);
  await startAndKill();
  await bull.ask(1);
  bull.work(() => undefined, { ...quick, maxStalledCount: 0 });
  await until("the follow-up", () => bull.runs.length === 1);
  await bull.quiet();
  expect(shape(bull.runs)).toEqual([["2", 1]]);
  expect(await bull.queue.getJob("1")).toMatchObject({
    failedReason: "job stalled more than allowable limit",
  });
});

test("a stalled job precedes all waiting jobs, and does not fail with a huge maxStalledCount", async () => {
  await bull.ask(0);
  await startAndKill();
  await bull.queue.add("job", { v: "urgent" }, { priority: 1 });
  await bull.redis.hset(bull.key("1"), "stc", 999_999);
  const { worker } = bull.work(() => undefined, { ...quick, autorun: false });
  // Two checks: the first marks active jobs, the second takes jobs without a lock.
  await worker.startStalledCheckTimer();
  await until("the job is back", async () => (await bull.queue.getWaitingCount()) === 1);
  void worker.run();
  await bull.quiet();
  expect(shape(bull.runs)).toEqual([
    ["1", 0],
    ["2", "urgent"],
  ]);
  expect(await bull.queue.getJobCounts("completed", "failed")).toEqual({ completed: 2, failed: 0 });
});

test("K6: after a lost lock, two workers run the job concurrently; the finish of the first is rejected by name", async () => {
  await bull.ask(0);
  const held = hold();
  const first = bull.work(() => held.wait(), {
    ...quick,
    skipLockRenewal: true,
    skipStalledCheck: true,
  });
  await until("the first run", () => first.runs.length === 1);
  const ended = hold();
  const second = bull.work(() => ended.wait(), quick);
  await until("the second run", () => second.runs.length === 1);
  expect(bull.mostAtOnce()).toBe(2);
  held.release();
  await until("the refusal", () => first.errors.length > 0);
  expect(first.errors[0]).toMatch(/^Lock mismatch for job 1\. Cmd moveToFinished/);
  ended.release();
  await bull.quiet();
  expect(bull.runs).toHaveLength(2);
  expect(await bull.queue.getJobCounts("completed", "failed")).toEqual({ completed: 1, failed: 0 });
});

test("K7: a failed lock renewal is reported by id, as event and as error", async () => {
  await bull.ask(0);
  const held = hold();
  const { worker, errors } = bull.work(() => held.wait(), { ...quick, skipStalledCheck: true });
  const lost: unknown[] = [];
  worker.on("lockRenewalFailed", (ids) => lost.push(ids));
  await until("a run", () => bull.runs.length === 1);
  await bull.redis.set(bull.key("1:lock"), "somebody else");
  await until("the event", () => lost.length > 0);
  expect(lost[0]).toEqual(["1"]);
  expect(errors).toContain("could not renew lock for job 1");
  held.release();
});

test("K7: cancelJob aborts the signal of a processor with three parameters; its retry is rejected by name", async () => {
  await bull.ask(0);
  const { worker, errors } = bull.work(
    (_job, _token, _seen, signal) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener("abort", () => reject(new Error(String(signal.reason))));
      }),
    { ...quick, skipStalledCheck: true },
  );
  worker.on("lockRenewalFailed", (ids) => {
    for (const id of ids) worker.cancelJob(id, "the lock was lost");
  });
  await until("a run", () => bull.runs.length === 1);
  await bull.redis.set(bull.key("1:lock"), "somebody else");
  await until("the refusal", () => errors.length > 1);
  expect(errors).toContain("Lock mismatch for job 1. Cmd moveToDelayed from active");
});

test("locks are renewed before they expire, with an event by job id", async () => {
  await bull.ask(0);
  const held = hold();
  const { worker } = bull.work(() => held.wait(), quick);
  const renewed: string[] = [];
  worker.on("locksRenewed", ({ jobIds }) => renewed.push(...jobIds));
  await until("more renewals than a lock lasts", () => renewed.length >= 4);
  expect(new Set(renewed)).toEqual(new Set(["1"]));
  expect(bull.runs).toHaveLength(1);
  held.release();
  await bull.quiet();
  expect(bull.runs).toHaveLength(1);
});

test("K17: close waits for running jobs and takes no new ones", async () => {
  const held = hold();
  const { worker } = bull.work(() => held.wait(), { concurrency: 3 });
  for (const v of [0, 1, 2, 3]) await bull.queue.add("job", { v });
  await until("three runs", () => bull.runs.length === 3);
  let closed = false;
  const closing = worker.close().then(() => (closed = true));
  await until("the closing", () => worker.closing !== undefined);
  expect(closed).toBe(false);
  held.release();
  await closing;
  expect(bull.runs).toHaveLength(3);
  expect(await bull.queue.getJobCounts("wait", "active", "completed")).toEqual({
    wait: 1,
    active: 0,
    completed: 3,
  });
});

test("pause(true) does not wait for running jobs; a worker that was waiting for a job still takes it, then no more", async () => {
  const held = hold();
  const { worker } = bull.work(() => held.wait(), { concurrency: 2 });
  await bull.queue.add("job", { v: 0 });
  await until("a run", () => bull.runs.length === 1);
  await worker.pause(true);
  for (const v of [1, 2, 3]) await bull.queue.add("job", { v });
  held.release();
  await until("the end", async () => (await bull.queue.getActiveCount()) === 0);
  expect(bull.runs.length).toBeLessThanOrEqual(2);
  expect(await bull.queue.getWaitingCount()).toBeGreaterThanOrEqual(2);
  await worker.resume();
  await bull.quiet();
  expect(bull.runs).toHaveLength(4);
});

test("K18: a crash of Redis with its AOF kept loses neither the running job nor its follow-up", async () => {
  const dir = mkdtempSync(join(tmpdir(), "konverge-contract-"));
  let redis = await startRedis({ dir, extraArgs: ["--appendfsync", "always"] });
  const connection = { url: redis.url, maxRetriesPerRequest: null, retryStrategy: () => 100 };
  const queue = new Queue("q", { connection });
  const runs: unknown[] = [];
  const held = hold();
  const worker = new Worker<{ v: number }>(
    "q",
    async (job) => {
      runs.push([job.id, job.data.v]);
      if (runs.length === 1) await held.wait();
    },
    { connection, ...quick, maxStalledCount: 100 },
  );
  // Both report the connection that this test cuts.
  queue.on("error", () => undefined);
  worker.on("error", () => undefined);
  try {
    await queue.add("job", { v: 0 }, DEDUPED);
    await until("a run", () => runs.length === 1);
    await queue.add("job", { v: 1 }, DEDUPED);
    await redis.kill();
    held.release();
    redis = await startRedis({ dir, port: redis.port, extraArgs: ["--appendfsync", "always"] });
    await until("the follow-up", () => runs.length > 1 && runs.at(-1));
    await until("its end", async () => {
      const counts = await queue.getJobCounts("wait", "prioritized", "active", "delayed");
      return Object.values(counts).every((count) => count === 0);
    });
    expect(runs.at(-1)).toEqual(["2", 1]);
    expect(await queue.getJobCountByTypes("failed")).toBe(0);
  } finally {
    await worker.close(true);
    await queue.close();
    await redis.stop();
    rmSync(dir, { recursive: true, force: true });
  }
});
