import { DelayedError, FlowProducer } from "bullmq";
import { expect, test } from "vitest";
import { hold } from "../integration/queue/queue-harness.ts";
import { DEDUPED, KEY, shape, useBull } from "./bull.ts";
import { until } from "../support/until.ts";

/** Deduplication while a job waits, runs or backs off: the basis of promises P1 and P2. */

const bull = useBull();
const HOUR_MS = 3_600_000;
const dedup = { id: KEY, keepLastIfActive: true } as const;

/** Starts a worker whose first run waits for `release`, then calls `first`. */
function heldWorker(first: () => unknown = () => undefined, options = {}) {
  const held = hold();
  let runs = 0;
  const seen = bull.work(async () => {
    if (runs++ > 0) return;
    await held.wait();
    await first();
  }, options);
  return {
    ...seen,
    release: held.release,
    started: () => until("a run", () => seen.runs.length > 0),
  };
}

/** Job 1 has failed once and waits an hour for its next attempt. */
async function backingOff() {
  const seen = bull.work(
    (job) => {
      if (job.attemptsMade === 0) throw new Error("first attempt");
    },
    { settings: { backoffStrategy: () => HOUR_MS } },
  );
  await bull.ask(0);
  await until("the backoff", async () => (await bull.queue.getDelayedCount()) === 1);
  return seen;
}
const delayLeft = async (id: string) => {
  const score = Number(await bull.redis.zscore(bull.key("delayed"), id));
  return Math.floor(score / 4_096) - Date.now();
};

test("D1: five adds while waiting are one job with the data of the first", async () => {
  const jobs = [];
  for (const v of [0, 1, 2, 3, 4]) jobs.push(await bull.ask(v));
  expect(jobs.map(({ id }) => id)).toEqual(["1", "1", "1", "1", "1"]);
  bull.work(() => undefined);
  await bull.quiet();
  expect(shape(bull.runs)).toEqual([["1", 0]]);
  expect(await bull.dedupKeys()).toEqual([]);
});

test("D2: the last of three adds while active is parked and runs once; no key remains", async () => {
  await bull.ask(0);
  const { started, release } = heldWorker(undefined, { concurrency: 3 });
  await started();
  const ids = [];
  for (const v of [1, 2, 3]) ids.push((await bull.ask(v)).id);
  expect(ids).toEqual(["1", "1", "1"]);
  expect(await bull.dedupKeys()).toEqual([`de:${KEY}`, `dn:${KEY}`]);
  expect(await bull.redis.hgetall(bull.key(`dn:${KEY}`))).toMatchObject({
    jid: "4",
    data: '{"v":3}',
  });
  release();
  await until("the follow-up", () => bull.runs.length === 2);
  await bull.quiet();
  expect(shape(bull.runs)).toEqual([
    ["1", 0],
    ["4", 3],
  ]);
  expect(bull.mostAtOnce()).toBe(1);
  expect(await bull.dedupKeys()).toEqual([]);
});

test("D3: without reschedule, an add during a backoff is dropped and the backoff continues", async () => {
  const { runs } = await backingOff();
  expect((await bull.ask(1, { deduplication: dedup })).id).toBe("1");
  expect(await delayLeft("1")).toBeGreaterThan(HOUR_MS / 2);
  expect(await bull.dedupKeys()).toEqual([`de:${KEY}`]);
  expect(runs).toHaveLength(1);
});

test("D4: with reschedule, an add ends the backoff; the job keeps id, data and attempts", async () => {
  await backingOff();
  expect((await bull.ask(1)).id).toBe("1");
  await until("the second run", () => bull.runs.length === 2);
  await bull.quiet();
  expect(bull.runs).toMatchObject([
    { id: "1", v: 0, attemptsMade: 0 },
    { id: "1", v: 0, attemptsMade: 1 },
  ]);
});

test("D5: with replace, an add during a backoff is a new job without the attempts", async () => {
  const { worker } = await backingOff();
  await worker.pause();
  expect((await bull.ask(1, { deduplication: { ...dedup, replace: true } })).id).toBe("2");
  expect(await bull.queue.getJob("1")).toBeUndefined();
  expect(await bull.queue.getJob("2")).toMatchObject({ attemptsMade: 0, data: { v: 1 } });
});

test("D5: with replace but not keepLastIfActive, an add while the job runs is dropped without a follow-up", async () => {
  await bull.ask(0);
  const { started, release } = heldWorker();
  await started();
  expect((await bull.ask(1, { deduplication: { id: KEY, replace: true } })).id).toBe("1");
  expect(await bull.dedupKeys()).toEqual([`de:${KEY}`]);
  release();
  await bull.quiet();
  expect(shape(bull.runs)).toEqual([["1", 0]]);
});

test("D6: a parked follow-up stays parked through a retry, and runs right after a promoted one", async () => {
  await bull.ask(0);
  const seen = heldWorker(
    () => {
      throw new Error("once");
    },
    { settings: { backoffStrategy: () => HOUR_MS } },
  );
  await seen.started();
  await bull.ask(1);
  seen.release();
  await until("the backoff", async () => (await bull.queue.getDelayedCount()) === 1);
  expect(await bull.dedupKeys()).toEqual([`de:${KEY}`, `dn:${KEY}`]);
  await (await bull.queue.getJob("1"))?.promote();
  await until("retry and follow-up", () => bull.runs.length === 3);
  await bull.quiet();
  expect(shape(bull.runs)).toEqual([
    ["1", 0],
    ["1", 0],
    ["2", 1],
  ]);
  expect(bull.mostAtOnce()).toBe(1);
});

test("D7: moveToDelayed keeps the owner and the follow-up, which waits for the full delay", async () => {
  await bull.ask(0);
  const held = hold();
  bull.work(async (job, token) => {
    await held.wait();
    await job.moveToDelayed(Date.now() + HOUR_MS, token);
    throw new DelayedError();
  });
  await until("a run", () => bull.runs.length === 1);
  await bull.ask(1);
  held.release();
  await until("the delay", async () => (await bull.queue.getDelayedCount()) === 1);
  expect(await bull.dedupKeys()).toEqual([`de:${KEY}`, `dn:${KEY}`]);
  expect(await bull.queue.getJobCounts("wait", "prioritized", "active")).toEqual({
    wait: 0,
    prioritized: 0,
    active: 0,
  });
  expect(await bull.queue.getJob("1")).toMatchObject({ attemptsMade: 0, attemptsStarted: 1 });
});

test("D8: the options of the last add while active apply: a delay also defers an earlier immediate add (B1)", async () => {
  await bull.ask(0);
  const { started, release } = heldWorker();
  await started();
  await bull.ask(1);
  await bull.ask(2, { delay: HOUR_MS });
  release();
  await until("the follow-up", async () => (await bull.queue.getDelayedCount()) === 1);
  expect(bull.runs).toHaveLength(1);
});

test("D9: the priority of the last add while active applies, even if it is lower (B1)", async () => {
  await bull.ask(0);
  const seen = heldWorker();
  await seen.started();
  await bull.ask(1, { priority: 1 });
  await bull.ask(2, { priority: 10 });
  await seen.worker.pause(true);
  seen.release();
  await until("the follow-up", async () => (await bull.queue.getPrioritizedCount()) === 1);
  expect((await bull.queue.getPrioritized())[0]).toMatchObject({ priority: 10, data: { v: 2 } });
});

test("D10: priority and data of an add that joins a waiting job are dropped (B7)", async () => {
  await bull.ask(0, { priority: 7 });
  await bull.ask(1, { priority: 2 });
  expect(await bull.queue.getJob("1")).toMatchObject({ priority: 7, data: { v: 0 } });
});

test("D11: reschedule with a delay can postpone a job that was nearly due (B5)", async () => {
  await bull.ask(0, { delay: 60_000 });
  await bull.ask(1, { delay: HOUR_MS });
  expect(await delayLeft("1")).toBeGreaterThan(HOUR_MS / 2);
});

test("D11: reschedule without a delay is due at the adder's time, by its clock or its timestamp", async () => {
  await bull.ask(0, { delay: 60_000 });
  await bull.ask(1, { timestamp: Date.now() + HOUR_MS });
  expect(await delayLeft("1")).toBeGreaterThan(HOUR_MS / 2);
  await bull.ask(2, { timestamp: Date.now() - HOUR_MS });
  expect(await delayLeft("1")).toBeLessThan(-HOUR_MS / 2);
  bull.work(() => undefined);
  await bull.quiet();
  expect(shape(bull.runs)).toEqual([["1", 0]]);
});

test("D12: with the key as job id, an add is lost silently while the job runs or a finished one is kept", async () => {
  const ask = (v: number) =>
    bull.queue.add("job", { v }, { jobId: "key", removeOnComplete: false });
  await ask(0);
  const { started, release } = heldWorker();
  await started();
  expect((await ask(1)).id).toBe("key");
  release();
  await bull.quiet();
  expect((await ask(2)).id).toBe("key");
  expect(await bull.queue.getJobCountByTypes("wait", "prioritized", "active")).toBe(0);
  expect(shape(bull.runs)).toEqual([["key", 0]]);
});

test("D13: a follow-up whose owner ends on a paused queue is created and waits for the resume", async () => {
  await bull.ask(0);
  const { started, release } = heldWorker();
  await started();
  await bull.ask(1);
  await bull.queue.pause();
  release();
  await until("the follow-up", async () => (await bull.queue.getJob("2")) !== undefined);
  expect(bull.runs).toHaveLength(1);
  await bull.queue.resume();
  await until("the follow-up runs", () => bull.runs.length === 2);
  await bull.quiet();
  expect(shape(bull.runs).at(-1)).toEqual(["2", 1]);
});

test.each([
  ["remove", async () => (await bull.queue.getJob("1"))?.remove()],
  ["clean", () => bull.queue.clean(0, 100, "delayed")],
  ["drain", () => bull.queue.drain(true)],
  ["obliterate", () => bull.queue.obliterate()],
])(
  "D14: %s removes owner and parked follow-up with the job, and leaves no key",
  async (_, remove) => {
    await bull.ask(0);
    const { started, release, worker } = heldWorker(
      () => {
        throw new Error("once");
      },
      { settings: { backoffStrategy: () => HOUR_MS } },
    );
    await started();
    await bull.ask(1);
    release();
    await until("the backoff", async () => (await bull.queue.getDelayedCount()) === 1);
    await worker.pause();
    expect(await bull.dedupKeys()).toEqual([`de:${KEY}`, `dn:${KEY}`]);
    await remove();
    expect(await bull.dedupKeys()).toEqual([]);
  },
);

test("D15: a deduplication id may contain colons, slashes, percent signs and any letter, up to 1,600 characters", async () => {
  for (const id of ["a:b:c", "c/default/x.y/ns/n", "p%20q%2F", "größe/名前", "n".repeat(1_600)]) {
    const add = (v: number) =>
      bull.queue.add("job", { v }, { ...DEDUPED, deduplication: { ...dedup, id } });
    const first = await add(0);
    expect((await add(1)).id).toBe(first.id);
    expect(await bull.redis.get(bull.key(`de:${id}`))).toBe(first.id);
  }
  bull.work(() => undefined);
  await bull.quiet();
  expect(bull.runs).toHaveLength(5);
  expect(await bull.dedupKeys()).toEqual([]);
});

test.each([
  ["attempts: Infinity", { attempts: Infinity }],
  ["priority: NaN", { priority: Number.NaN }],
])(
  "D16: %s fails after the deduplication key was set; the next valid add repairs it (B8)",
  async (_, bad) => {
    await expect(bull.ask(0, bad)).rejects.toThrow(/NaN or Inf/);
    expect(await bull.dedupKeys()).toEqual([`de:${KEY}`]);
    bull.work(() => undefined);
    await bull.ask(1);
    await until("a run", () => bull.runs.length === 1);
    await bull.quiet();
    expect(shape(bull.runs).at(-1)?.[1]).toBe(1);
    expect(await bull.dedupKeys()).toEqual([]);
  },
);

test("D17: flows reject deduplication: a parent any, a child keepLastIfActive (B9)", async () => {
  const flow = new FlowProducer({ connection: { url: bull.url }, prefix: bull.prefix });
  try {
    const child = { name: "child", queueName: bull.name, data: { v: 1 } };
    const parent = { name: "parent", queueName: bull.name, data: { v: 0 } };
    await expect(
      flow.add({ ...parent, opts: { deduplication: { id: KEY } }, children: [child] }),
    ).rejects.toThrow(/[Dd]eduplication/);
    await expect(
      flow.add({ ...parent, children: [{ ...child, opts: { deduplication: dedup } }] }),
    ).rejects.toThrow(/keepLastIfActive/);
    const { id = "" } = await bull.queue.add("parent", { v: 0 });
    await expect(
      bull.ask(1, { parent: { id, queue: `${bull.prefix}:${bull.name}` } }),
    ).rejects.toThrow(/[Dd]eduplication|keepLastIfActive/);
  } finally {
    await flow.close();
  }
});

test("a deduplication key without its job is taken over by the next add, and its stale follow-up dropped", async () => {
  await bull.redis.set(bull.key(`de:${KEY}`), "12345");
  await bull.redis.hset(
    bull.key(`dn:${KEY}`),
    "name",
    "job",
    "data",
    '{"v":"stale"}',
    "opts",
    "{}",
  );
  await bull.ask(1);
  bull.work(() => undefined);
  await bull.quiet();
  expect(bull.runs.map(({ v }) => v)).toEqual([1]);
  expect(await bull.dedupKeys()).toEqual([]);
});
