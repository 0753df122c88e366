import { expect, test } from "vitest";
import { hold } from "../integration/queue/queue-harness.ts";
import { KEY, shape, useBull } from "./bull.ts";
import { until } from "../support/until.ts";

/** Actions that break "one job per key at a time" in BullMQ alone: the reasons for the key lease and for omitted features. */

const bull = useBull();

/** Job 1 (v 0) has failed permanently and is kept; job 2 (v 1) of the same key runs until `release`. */
async function failedAndRunning() {
  const held = hold();
  const seen = bull.work(
    async (job, _token, { runs }) => {
      if (runs.length === 1) throw new Error("for good");
      await held.wait();
      return job.id;
    },
    { concurrency: 5 },
  );
  await bull.ask(0, { attempts: 1 });
  await until("the failure", async () => (await bull.queue.getFailedCount()) === 1);
  await bull.ask(1);
  await until("the second job", () => seen.runs.length === 2);
  return { ...seen, release: held.release };
}

test("K8: job.retry() of a failed job runs concurrently with the key's current one (B2)", async () => {
  const { release } = await failedAndRunning();
  await (await bull.queue.getJob("1"))?.retry("failed");
  await until("a third run", () => bull.runs.length === 3);
  expect(bull.mostAtOnce()).toBe(2);
  release();
  await bull.quiet();
});

test("K8: queue.retryJobs() does the same (B2)", async () => {
  const { release } = await failedAndRunning();
  await bull.queue.retryJobs({ state: "failed" });
  await until("a third run", () => bull.runs.length === 3);
  expect(bull.mostAtOnce()).toBe(2);
  release();
  await bull.quiet();
});

test("K9: after removeDeduplicationKey during a run, the next add runs concurrently (B3)", async () => {
  const held = hold();
  bull.work(() => held.wait(), { concurrency: 5 });
  await bull.ask(0);
  await until("a run", () => bull.runs.length === 1);
  await bull.queue.removeDeduplicationKey(KEY);
  await bull.ask(1);
  await until("a second run", () => bull.runs.length === 2);
  expect(bull.mostAtOnce()).toBe(2);
  held.release();
  await bull.quiet();
});

test("K10: after an external retry, the parked follow-up runs when the first of the two ends, concurrently with the other", async () => {
  const held = [hold(), hold(), hold()];
  let runs = 0;
  bull.work(
    async () => {
      const run = runs++;
      if (run === 0) throw new Error("for good");
      await held[run - 1]?.wait();
    },
    { concurrency: 5 },
  );
  await bull.ask(0, { attempts: 1 });
  await until("the failure", async () => (await bull.queue.getFailedCount()) === 1);
  await bull.ask(1);
  await until("the second job", () => bull.runs.length === 2);
  await (await bull.queue.getJob("1"))?.retry("failed");
  await until("the rogue", () => bull.runs.length === 3);
  await bull.ask(2);
  held[0]?.release();
  await until("the follow-up", () => bull.runs.length === 4);
  expect(shape(bull.runs)).toEqual([
    ["1", 0],
    ["2", 1],
    ["1", 0],
    ["3", 2],
  ]);
  expect(bull.runs.filter(({ endMs }) => endMs === undefined)).toHaveLength(2);
  for (const { release } of held) release();
  await bull.quiet();
});

test("K11: a scheduler's jobs bypass deduplication and run concurrently (B4)", async () => {
  const held = hold();
  bull.work(() => held.wait(), { concurrency: 5 });
  // The type omits deduplication; JavaScript does not.
  const options = { deduplication: { id: KEY, keepLastIfActive: true } } as object;
  await bull.queue.upsertJobScheduler(
    "tick",
    { every: 50 },
    { name: "job", data: { v: 0 }, opts: options },
  );
  await until("three runs", () => bull.runs.length >= 3);
  expect(bull.mostAtOnce()).toBeGreaterThanOrEqual(3);
  await bull.queue.removeJobScheduler("tick");
  held.release();
  await bull.quiet();
});
