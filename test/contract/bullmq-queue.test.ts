import type { JobsOptions } from "bullmq";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { hold } from "../integration/queue/queue-harness.ts";
import { DEDUPED, KEY, shape, useBull } from "./bull.ts";
import { watchCommands } from "./watch-commands.ts";
import { until } from "../support/until.ts";

/** Order, layout in Redis, connections and error texts of BullMQ, on which scripts and error handling rely. */

const bull = useBull();
const HOUR_MS = 3_600_000;
/** As in libs/queue/src/attempt/queue-worker.ts, job-runner.ts and requester.ts. */
const LOST_LOCK = /^(Missing key|Missing lock|Lock mismatch|could not renew lock) for job/;
const NOT_DELAYED = /not in the delayed state|Missing key/;
const MISSING = /missing key/i;

test("K13: addBulk with a missing parent returns id -5 for that one, adds the others and throws nothing", async () => {
  const parent = { id: "nobody", queue: `${bull.prefix}:${bull.name}` };
  const jobs = await bull.queue.addBulk([
    { name: "job", data: { v: 0 } },
    { name: "job", data: { v: 1 }, opts: { parent } },
    { name: "job", data: { v: 2 } },
  ]);
  expect(jobs.map(({ id }) => String(id))).toEqual(["1", "-5", expect.stringMatching(/^[23]$/)]);
  expect(await bull.queue.getWaitingCount()).toBe(2);
});

test("K14: priority 0 precedes all others; then lower first, and older first within a priority", async () => {
  for (const [v, priority] of [
    [0, 9],
    [1, 1],
    [2, 9],
    [3, 0],
    [4, 1],
    [5, 0],
  ]) {
    await bull.queue.add("job", { v }, priority === undefined ? {} : { priority });
  }
  bull.work(() => undefined);
  await bull.quiet();
  expect(bull.runs.map(({ v }) => v)).toEqual([3, 5, 1, 4, 0, 2]);
});

test("priorities go up to 2,097,151; the next one is rejected", async () => {
  await bull.queue.add("job", { v: 0 }, { priority: 2_097_151 });
  await expect(bull.queue.add("job", { v: 0 }, { priority: 2_097_152 })).rejects.toThrow(
    "between 0 and 2097151",
  );
  await expect(bull.queue.add("job", { v: 0 }, { priority: 1.5 })).rejects.toThrow(
    "should not be float",
  );
});

test("K16: a second plain Queue object resets the kept events; skipMetasUpdate keeps them", async () => {
  const maxLen = async () => await bull.redis.hget(bull.key("meta"), "opts.maxLenEvents");
  await bull.open({ streams: { events: { maxLen: 500 } } }).waitUntilReady();
  await until("the setting", async () => (await maxLen()) === "500");
  const looking = bull.open({ skipMetasUpdate: true });
  await looking.add("job", { v: 0 });
  expect(await maxLen()).toBe("500");
  await bull.open().waitUntilReady();
  await until("the reset", async () => (await maxLen()) === "10000");
});

test("layout: a waiting job is scored priority * 2^32 + counter, its hash has `priority` and `deid`, `de:<id>` its id", async () => {
  await bull.ask(0, { priority: 7 });
  const score = Number(await bull.redis.zscore(bull.key("prioritized"), "1"));
  expect(Math.floor(score / 2 ** 32)).toBe(7);
  expect(score % 2 ** 32).toBe(Number(await bull.redis.get(bull.key("pc"))));
  expect(await bull.redis.hgetall(bull.key("1"))).toMatchObject({ priority: "7", deid: KEY });
  expect(await bull.redis.get(bull.key(`de:${KEY}`))).toBe("1");
});

test("layout: a delayed job is scored due time in ms * 4096, and one in the past runs immediately", async () => {
  const before = Date.now();
  await bull.ask(0, { delay: HOUR_MS });
  const score = Number(await bull.redis.zscore(bull.key("delayed"), "1"));
  expect(Math.floor(score / 4_096)).toBeGreaterThanOrEqual(before + HOUR_MS);
  expect(Math.floor(score / 4_096)).toBeLessThanOrEqual(Date.now() + HOUR_MS);
});

test("changePriority of the backend moves a waiting job by id; `prioritized` is ordered by it", async () => {
  for (const v of [0, 1]) await bull.queue.add("job", { v }, { priority: 50 });
  await bull.queue.getBackend().changePriority("2", 3);
  bull.work(() => undefined);
  await bull.quiet();
  expect(bull.runs.map(({ v }) => v)).toEqual([1, 0]);
});

test("error texts that the code matches: changePriority, promote, finish and retry of a missing job", async () => {
  const messageOf = async (call: () => unknown): Promise<string> => {
    try {
      await call();
    } catch (error) {
      return error instanceof Error ? error.message : "";
    }
    return "nothing was thrown";
  };
  expect(await messageOf(() => bull.queue.getBackend().changePriority("99", 1))).toMatch(MISSING);

  const waiting = await bull.ask(0);
  expect(await messageOf(() => waiting.promote())).toMatch(NOT_DELAYED);
  await waiting.remove();
  expect(await messageOf(() => waiting.promote())).toMatch(NOT_DELAYED);
  expect(await messageOf(() => waiting.changePriority({ priority: 2 }))).toMatch(NOT_DELAYED);

  const held = hold();
  const { errors } = bull.work(async (job, token) => {
    await held.wait();
    await job.moveToDelayed(Date.now() + HOUR_MS, token);
  });
  await bull.ask(1);
  await until("a run", () => bull.runs.length === 1);
  await bull.redis.del(bull.key("2:lock"));
  held.release();
  await until("the refusal", () => errors.length > 0);
  for (const message of errors) expect(message).toMatch(LOST_LOCK);
  expect(errors.join()).toContain("Missing lock");
});

test("a job whose hash was deleted while it ran ends with `Missing key`, and the worker continues", async () => {
  const held = hold();
  const { errors } = bull.work(() => held.wait());
  await bull.ask(0);
  await until("a run", () => bull.runs.length === 1);
  await bull.redis.del(bull.key("1"));
  held.release();
  await until("the refusal", () => errors.length > 0);
  for (const message of errors) expect(message).toMatch(LOST_LOCK);
  await bull.queue.add("job", { v: "next" });
  await until("the next", () => bull.runs.length === 2);
});

test("commands of a processor on the worker's connection reach Redis before its job's finish, without waiting", async () => {
  const connection = new Redis(bull.url, { maxRetriesPerRequest: null });
  const completed = bull.key("completed");
  const marker = `${bull.prefix}:marker`;
  using seen = await watchCommands(bull.url);
  try {
    bull.work(
      (job) => {
        void connection.set(marker, job.id ?? "");
      },
      { connection, concurrency: 10 },
    );
    await bull.queue.addBulk(Array.from({ length: 100 }, (_, v) => ({ name: "job", data: { v } })));
    await bull.quiet();
    const steps = await until("the commands", () => {
      const found = seen.commands.flatMap(({ args: [command = "", key, first, second] }) => {
        if (key === marker) return [`end ${first}`];
        return key === completed && /^zadd$/i.test(command) ? [`finish ${second}`] : [];
      });
      return found.length >= 200 && found;
    });
    for (let id = 1; id <= 100; id++) {
      expect(steps.filter((step) => step.endsWith(` ${id}`))).toEqual([
        `end ${id}`,
        `finish ${id}`,
      ]);
    }
  } finally {
    connection.disconnect();
  }
});

test("a worker opens one additional connection with `duplicate`, so that both can be closed", async () => {
  const connection = new Redis(bull.url, { maxRetriesPerRequest: null });
  const copies: Redis[] = [];
  const duplicate = connection.duplicate.bind(connection);
  connection.duplicate = (override) => {
    const copy = duplicate(override);
    copies.push(copy);
    return copy;
  };
  const { worker } = bull.work(() => undefined, { connection });
  await worker.waitUntilReady();
  await bull.queue.add("job", { v: 0 });
  await bull.quiet();
  await until("the second connection", () => copies.length === 1);
  await worker.close();
  expect(copies).toHaveLength(1);
  expect(connection.status).toBe("ready");
  connection.disconnect();
});

test("removeOnComplete: true leaves neither job nor event-independent keys of it", async () => {
  bull.work(() => undefined);
  await bull.ask(0, { removeOnComplete: true });
  await until("the end", async () => (await bull.redis.exists(bull.key("1"))) === 0);
  await bull.quiet();
  const keys = (await bull.redis.keys(bull.key("*"))).map((key) => key.slice(bull.key("").length));
  expect(keys.filter((key) => /^1\b|^d[en]:|completed|failed/.test(key))).toEqual([]);
});

test("delayed jobs whose times coincide all run", async () => {
  const options: JobsOptions = { delay: 30, timestamp: Date.now() };
  for (let v = 0; v < 50; v++) {
    await bull.queue.add("job", { v }, { ...DEDUPED, ...options, deduplication: { id: `${v}` } });
  }
  bull.work(() => undefined, { concurrency: 4 });
  await bull.quiet();
  expect(bull.runs).toHaveLength(50);
  expect(new Set(shape(bull.runs).map(([id]) => id)).size).toBe(50);
});

test("a busy worker sends one command per job; a waiting job with its deduplication key takes about 1 kB", async () => {
  for (let v = 0; v < 50; v++) await bull.ask(v, { deduplication: { id: `id-${v}` } });
  const bytes = await Promise.all(
    [bull.key("7"), bull.key("de:id-6")].map((key) => bull.redis.memory("USAGE", key)),
  );
  expect(bytes.reduce<number>((sum, each) => sum + Number(each ?? Infinity), 0)).toBeLessThan(
    1_500,
  );
  const root = bull.key("");
  using seen = await watchCommands(bull.url);
  const { worker } = bull.work(() => undefined, { concurrency: 10 });
  let completed = 0;
  worker.on("completed", () => (completed += 1));
  await until("all jobs", () => completed === 50);
  const sent = () =>
    seen.commands.filter(
      ({ args, byScript }) => !byScript && args.some((arg) => arg.startsWith(root)),
    );
  await until("the commands", () => sent().length >= 50);
  expect(sent().length).toBeLessThanOrEqual(50 + 20);
});

test("global concurrency limits all workers of a queue together", async () => {
  await bull.queue.setGlobalConcurrency(2);
  for (let v = 0; v < 12; v++) await bull.queue.add("job", { v });
  const held = hold();
  for (let n = 0; n < 3; n++) bull.work(() => held.wait(), { concurrency: 4 });
  await until("two runs", () => bull.runs.length === 2);
  expect(await bull.queue.getActiveCount()).toBe(2);
  held.release();
  await bull.quiet();
  expect(bull.mostAtOnce()).toBeLessThanOrEqual(2);
});

test("B10: a coalesced add is a bounded number of commands and reads no list of active jobs", async () => {
  await bull.ask(0);
  const root = bull.key("");
  using seen = await watchCommands(bull.url);
  await bull.ask(1);
  const own = () =>
    seen.commands
      .filter(({ args }) => args.some((arg) => arg.startsWith(root)))
      .map(({ args: [command = ""] }) => command.toLowerCase());
  await until("the add", () => own().includes("xadd"));
  expect(own()).not.toContain("lrange");
  expect(own().length).toBeLessThanOrEqual(12);
});
