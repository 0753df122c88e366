import { DelayedError, type Job, type JobsOptions } from "bullmq";
import { expect, test } from "vitest";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { DEDUPED, useBull, type Payload } from "./bull.ts";
import { until } from "../support/until.ts";
import { isLongRun, seed } from "../support/test-run.ts";

/**
 * Random adds, failures and delays against BullMQ alone: one job per key runs at a time, and a run begins after the last add
 * of a key. External retries break this; a lease in Redis restores it, which is why the queue has one.
 */

const bull = useBull();
const ADDS = isLongRun ? 8_000 : 1_200;
const KEYS = 20;
const WORKERS = 3;

interface Chaos {
  /** An add ends the delay of a job. */
  readonly reschedule: boolean;
  /** Promotes the retry of a failed attempt with a parked follow-up, like the worker does. */
  readonly promote?: true;
  /** Probability that a step retries a failed job externally. */
  readonly rogue?: number;
  /** A key is locked with SET NX before it runs; a busy one is delayed. */
  readonly lease?: true;
}

interface Found {
  readonly most: number;
  /** Keys without a run after their last add. */
  readonly lost: string[];
  readonly rogues: number;
}

async function play({ reschedule, promote, rogue = 0, lease }: Chaos): Promise<Found> {
  console.log(`KONVERGE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const running = new Map<string, number>();
  /** Numbers of a key's last add, and of the last add before the start of a complete run. */
  const asked = new Map<string, number>();
  const begun = new Map<string, number>();
  const counter = (key: string) => `${bull.prefix}:asked:${key}`;
  // As in the queue: Redis has the number of the request before its job.
  const ask = async (key: string, options: JobsOptions = {}) => {
    asked.set(key, await bull.redis.incr(counter(key)));
    const deduplication = { id: key, keepLastIfActive: true, reschedule };
    await bull.queue.add("job", { v: key }, { ...DEDUPED, deduplication, ...options });
  };
  let most = 0;
  let rogues = 0;
  let calm = false;

  const handle = async (job: Job<Payload>, token: string | undefined) => {
    const key = String(job.data.v);
    const leased = `${bull.prefix}:lease:${key}`;
    if (lease && (await bull.redis.set(leased, "1", "PX", 30_000, "NX")) === null) {
      await job.moveToDelayed(Date.now() + 5 + random() * 10, token);
      throw new DelayedError();
    }
    const now = (running.get(key) ?? 0) + 1;
    running.set(key, now);
    most = Math.max(most, now);
    let covered = 0;
    try {
      covered = Number(await bull.redis.get(counter(key)));
      await new Promise((resolve) => setTimeout(resolve, random() * 6));
    } finally {
      running.set(key, (running.get(key) ?? 1) - 1);
      if (lease) await bull.redis.del(leased);
    }
    const fate = calm ? 1 : random();
    if (fate < 0.15) throw new Error("at random");
    if (fate < 0.25) {
      await job.moveToDelayed(Date.now() + random() * 30, token);
      throw new DelayedError();
    }
    begun.set(key, Math.max(begun.get(key) ?? 0, covered));
  };
  for (let n = 0; n < WORKERS; n++) {
    const { worker } = bull.work(handle, {
      concurrency: 8,
      settings: { backoffStrategy: () => 1 + random() * 40 },
    });
    if (promote) {
      worker.on("failed", (job) => {
        if (job === undefined) return;
        // It may be running again; then there is nothing to promote.
        job.promote().catch(() => undefined);
      });
    }
  }

  for (let step = 1; step <= ADDS; step++) {
    const key = `k${Math.floor(random() * KEYS)}`;
    // With external retries, some jobs fail permanently, so that there are jobs to retry.
    await ask(key, rogue > 0 && random() < 0.3 ? { attempts: 1 } : {});
    if (random() < rogue) {
      for (const failed of await bull.queue.getJobs("failed", 0, 3)) {
        // Retried by the previous step, or running.
        await failed
          .retry("failed")
          .then(() => (rogues += 1))
          .catch(() => undefined);
      }
    }
    if (random() < 0.5) await new Promise((resolve) => setTimeout(resolve, random() * 3));
  }
  calm = true;
  // One more add per key, so that permanently failed keys have a later request.
  for (let n = 0; n < KEYS; n++) await ask(`k${n}`);
  await bull.quiet();
  await until("the last handlers", () => [...running.values()].every((count) => count === 0));
  const lost = [...asked].filter(([key, number]) => (begun.get(key) ?? 0) < number);
  return { most, lost: lost.map(([key]) => key), rogues };
}

const LIMIT_MS = isLongRun ? 300_000 : 60_000;

test(
  "S1: with reschedule, one run of a key at a time, no add lost, no key left",
  { timeout: LIMIT_MS },
  async () => {
    expect(await play({ reschedule: true })).toMatchObject({ most: 1, lost: [] });
    expect(await bull.dedupKeys()).toEqual([]);
  },
);

test("S2: the same without reschedule", { timeout: LIMIT_MS }, async () => {
  expect(await play({ reschedule: false })).toMatchObject({ most: 1, lost: [] });
  expect(await bull.dedupKeys()).toEqual([]);
});

test(
  "S3: the same with a promotion after each failed attempt, like the worker",
  { timeout: LIMIT_MS },
  async () => {
    expect(await play({ reschedule: true, promote: true })).toMatchObject({ most: 1, lost: [] });
    expect(await bull.dedupKeys()).toEqual([]);
  },
);

test("S4: external retries run a key concurrently", { timeout: LIMIT_MS }, async () => {
  const { most, rogues } = await play({ reschedule: true, promote: true, rogue: 0.3 });
  expect(rogues).toBeGreaterThan(0);
  expect(most).toBeGreaterThan(1);
});

test(
  "S4: with a lease in Redis they do not, and no add is lost",
  { timeout: LIMIT_MS },
  async () => {
    const found = await play({ reschedule: true, promote: true, rogue: 0.3, lease: true });
    expect(found).toMatchObject({ most: 1, lost: [] });
    expect(found.rogues).toBeGreaterThan(0);
  },
);
