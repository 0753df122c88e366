import {
  DelayedError,
  QueueEvents,
  RateLimitError,
  UnrecoverableError,
  WaitingError,
} from "bullmq";
import { expect, test } from "vitest";
import { hold } from "../integration/queue/queue-harness.ts";
import { KEY, shape, useBull } from "./bull.ts";
import { until } from "../support/until.ts";

/** Failures of attempts and returns of jobs: the basis of promise P7 and of the backoffs. */

const bull = useBull();
const HOUR_MS = 3_600_000;

test.each([
  ["attempts are used up", { attempts: 1 }, () => new Error("boom"), 1],
  ["the error is unrecoverable", {}, () => new UnrecoverableError("boom"), 1],
  ["the backoff strategy says -1", {}, () => new Error("boom"), -1],
])(
  "K3: when %s the job fails permanently, and its follow-up runs",
  async (_, options, error, delay) => {
    await bull.ask(0, options);
    const held = hold();
    bull.work(
      async (job) => {
        if (job.id !== "1") return;
        await held.wait();
        throw error();
      },
      { settings: { backoffStrategy: () => delay } },
    );
    await until("a run", () => bull.runs.length === 1);
    await bull.ask(1);
    held.release();
    await until("the follow-up", () => bull.runs.length === 2);
    await bull.quiet();
    expect(shape(bull.runs)).toEqual([
      ["1", 0],
      ["2", 1],
    ]);
    expect(await bull.queue.getJobCounts("completed", "failed")).toEqual({
      completed: 1,
      failed: 1,
    });
    expect(await bull.dedupKeys()).toEqual([]);
  },
);

test("K4: the backoff strategy gets attempts from 1, the type, the thrown error itself, and the job", async () => {
  const thrown = Object.assign(new Error("boom"), { code: 409 });
  const calls: unknown[][] = [];
  bull.work(
    (job) => {
      if (job.attemptsMade < 2) throw thrown;
    },
    {
      settings: {
        backoffStrategy: (attemptsMade, type, error, job) => {
          calls.push([attemptsMade, type, error === thrown, job?.id]);
          return 1;
        },
      },
    },
  );
  await bull.ask(0, { backoff: { type: "konverge" } });
  await until("three runs", () => bull.runs.length === 3);
  expect(calls).toEqual([
    [1, "konverge", true, "1"],
    [2, "konverge", true, "1"],
  ]);
});

test("K4: the strategy's delay applies; 0 retries immediately", async () => {
  const delays = [0, HOUR_MS];
  bull.work(
    () => {
      throw new Error("boom");
    },
    { settings: { backoffStrategy: () => delays.shift() ?? HOUR_MS } },
  );
  const before = Date.now();
  await bull.ask(0);
  await until("the long delay", async () => (await bull.queue.getDelayedCount()) === 1);
  expect(bull.runs).toHaveLength(2);
  const dueMs = Math.floor(Number(await bull.redis.zscore(bull.key("delayed"), "1")) / 4_096);
  expect(dueMs).toBeGreaterThanOrEqual(before + HOUR_MS);
  expect(dueMs).toBeLessThanOrEqual(Date.now() + HOUR_MS);
});

test("K5: a backoff strategy that throws leaves the job active until its lock expires, then it stalls", async () => {
  let strategies = 0;
  const { errors } = bull.work(
    (job) => {
      if (job.stalledCounter === 0) throw new Error("boom");
    },
    {
      lockDuration: 300,
      stalledInterval: 150,
      settings: {
        backoffStrategy: () => {
          strategies += 1;
          throw new Error("no strategy");
        },
      },
    },
  );
  await bull.ask(0);
  await until("the run after the stall", () => bull.runs.length === 2);
  await bull.quiet();
  expect(strategies).toBe(1);
  expect(errors).toContain("no strategy");
});

test("K12: RateLimitError returns the job without counting an attempt; it runs again", async () => {
  bull.work(
    async (_job, _token, { worker, runs }) => {
      if (runs.length > 1) return;
      await bull.queue.rateLimit(20);
      expect(worker.opts.limiter).toBeDefined();
      throw new RateLimitError();
    },
    { limiter: { max: 1_000, duration: 1_000 } },
  );
  await bull.ask(0);
  await until("the second run", () => bull.runs.length === 2);
  expect(bull.runs.map(({ attemptsMade }) => attemptsMade)).toEqual([0, 0]);
});

test("K12: a worker without a limiter ignores the rate limit of another", async () => {
  const limited = bull.work(async () => {
    await bull.queue.rateLimit(HOUR_MS);
    throw new RateLimitError();
  });
  await bull.ask(0);
  await until(
    "the job is back",
    async () => limited.runs.length === 1 && (await bull.queue.getPrioritizedCount()) === 1,
  );
  const other = bull.work(() => undefined);
  await bull.quiet();
  expect(other.runs).toHaveLength(1);
});

test("K15: a worker's `failed` fires on every failed attempt, with the thrown error; the events' only on the last", async () => {
  const events = new QueueEvents(bull.name, {
    connection: { url: bull.url },
    prefix: bull.prefix,
  });
  try {
    await events.waitUntilReady();
    const seen: string[] = [];
    for (const name of ["failed", "retries-exhausted"] as const) {
      events.on(name, ({ jobId }: { jobId: string }) => seen.push(`${name} ${jobId}`));
    }
    class Signal extends Error {}
    const thrown = new Signal("boom");
    const failed: unknown[] = [];
    const { worker } = bull.work(() => {
      throw thrown;
    });
    worker.on("failed", (job, error) => {
      failed.push([job?.id, job?.attemptsMade, error === thrown, job?.finishedOn !== undefined]);
    });
    await bull.ask(0, { attempts: 3 });
    await until("the last events", () => seen.length === 2 && failed.length === 3);
    expect(failed).toEqual([
      ["1", 1, true, false],
      ["1", 2, true, false],
      ["1", 3, true, true],
    ]);
    expect(seen.toSorted()).toEqual(["failed 1", "retries-exhausted 1"]);
  } finally {
    await events.close();
  }
});

test("`failed` is emitted after the job entered its backoff, so that a listener can promote it", async () => {
  const { worker } = bull.work(
    (job) => {
      if (job.attemptsMade === 0) throw new Error("boom");
    },
    { settings: { backoffStrategy: () => HOUR_MS } },
  );
  const promoted: unknown[] = [];
  worker.on("failed", (job) => {
    job
      ?.changePriority({ priority: 3 })
      .then(() => job.promote())
      .then(() => promoted.push(job.id))
      .catch((error: unknown) => promoted.push(error));
  });
  await bull.ask(0);
  await until("the second run", () => bull.runs.length === 2);
  await until("the answer", () => promoted.length === 1);
  expect(promoted).toEqual(["1"]);
});

test("a stack trace is limited to stackTraceLimit entries for any number of failures", async () => {
  let failures = 0;
  bull.work(() => {
    failures += 1;
    if (failures <= 12) throw new Error(`boom ${failures}`);
  });
  await bull.ask(0, { stackTraceLimit: 1 });
  await bull.quiet();
  const stacks = JSON.parse(
    (await bull.redis.hget(bull.key("1"), "stacktrace")) ?? "null",
  ) as unknown;
  expect(failures).toBe(13);
  expect(stacks).toHaveLength(1);
});

test("Redis stores the error's message and `stack` of a failed attempt, which the code sets", async () => {
  const error = new Error("conflict");
  error.stack = "conflict";
  Object.assign(error, { secret: "hunter2", cause: new Error("hunter2") });
  bull.work(
    () => {
      throw error;
    },
    { settings: { backoffStrategy: () => HOUR_MS } },
  );
  await bull.ask(0, { stackTraceLimit: 1 });
  await until("the backoff", async () => (await bull.queue.getDelayedCount()) === 1);
  const kept = await bull.redis.hgetall(bull.key("1"));
  expect(kept).toMatchObject({ failedReason: "conflict", stacktrace: '["conflict"]' });
  expect(JSON.stringify(kept)).not.toContain("hunter2");
});

test("moveToWait and WaitingError return a job with its priority and without counting an attempt", async () => {
  let runs = 0;
  const { worker } = bull.work(async (job, token) => {
    if (runs++ > 0) return;
    await worker.pause(true);
    await job.moveToWait(token ?? "");
    throw new WaitingError();
  });
  await bull.ask(0);
  await until("the first run", () => runs === 1);
  await until("the job is back", async () => (await bull.queue.getPrioritizedCount()) === 1);
  expect(await bull.queue.getJob("1")).toMatchObject({
    attemptsMade: 0,
    priority: 5,
    deduplicationId: KEY,
  });
  expect(await bull.dedupKeys()).toEqual([`de:${KEY}`]);
  await worker.resume();
  await until("the second run", () => bull.runs.length === 2);
  await bull.quiet();
});

test("moveToDelayed and DelayedError delay a job without counting an attempt, exact to the millisecond", async () => {
  const atMs = Date.now() + HOUR_MS;
  bull.work(async (job, token) => {
    await job.moveToDelayed(atMs, token);
    throw new DelayedError();
  });
  await bull.ask(0);
  await until("the delay", async () => (await bull.queue.getDelayedCount()) === 1);
  expect(Math.floor(Number(await bull.redis.zscore(bull.key("delayed"), "1")) / 4_096)).toBe(atMs);
  expect(await bull.queue.getJob("1")).toMatchObject({ attemptsMade: 0, attemptsStarted: 1 });
});

test("changePriority on a running job applies after moveToDelayed and promote", async () => {
  const { worker } = bull.work(async (job, token) => {
    await job.changePriority({ priority: 77 });
    await job.moveToDelayed(Date.now() + HOUR_MS, token);
    throw new DelayedError();
  });
  await bull.ask(0);
  await until("the delay", async () => (await bull.queue.getDelayedCount()) === 1);
  await worker.pause();
  await (await bull.queue.getJob("1"))?.promote();
  const score = Number(await bull.redis.zscore(bull.key("prioritized"), "1"));
  expect(Math.floor(score / 2 ** 32)).toBe(77);
});
