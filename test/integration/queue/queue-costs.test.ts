import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startRedis, type RunningRedis } from "@konverge/apiserver";
import { formatKey, type ObjectKey } from "@konverge/core";
import { createWorkQueue, type WorkQueue } from "@konverge/queue";
import { runScript } from "@konverge/redis";
import { queueNames } from "../../../libs/queue/src/keys/queue-names.ts";
import { ageScript } from "../../../libs/queue/src/scripts/age.ts";
import { pumpScript } from "../../../libs/queue/src/scripts/pump.ts";
import { rebaseScript } from "../../../libs/queue/src/scripts/rebase.ts";
import { commandsDuring, countCosts, type RedisCosts } from "../../support/redis-entries.ts";
import { until } from "../../support/until.ts";
import { loggedRecord } from "./logged-record.ts";
import { CLUSTER, CONTROLLER, hold, keyOf, workOn } from "./queue-harness.ts";

/** Waiting keys of two queues. A scan of all of them would cost ten times as much in the second one. */
const [SMALL, LARGE] = [300, 3_000];
/** Commands with which another connection may open meanwhile. */
const OPENING = 5;
/** A page of the index has 500 keys, more than the small queue. */
const PAGE_REST = 500 - SMALL;
/** Tolerated difference: commands that open connections, BullMQ's blocking reads and its search for stalled jobs. */
const NOISE = 60;
const ROUNDS = [pumpScript.sha, ageScript.sha, rebaseScript.sha];
const NOT_DUE_MS = 3_600_000;
const trigger = { kind: "watch", by: "test" } as const;

let server: RunningRedis;
let redis: Redis;
const queues: WorkQueue[] = [];
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});
afterAll(async () => {
  await Promise.all(queues.map((queue) => queue.close()));
  redis.disconnect();
  await server.stop();
});

/** Each key in one of a hundred namespaces. */
const waitingKey = (index: number): ObjectKey => ({
  ...keyOf(`key-${index}`),
  namespace: `tenant-${index % 100}`,
});

let opened = 0;
async function openWith(waiting: number): Promise<WorkQueue> {
  const prefix = `costs-${(opened += 1)}`;
  const common = { redis: { url: server.url }, prefix, cluster: CLUSTER, controller: CONTROLLER };
  const queue = createWorkQueue(common);
  queues.push(queue);
  await Promise.all(
    Array.from({ length: waiting }, (_, index) => queue.submit(waitingKey(index), trigger)),
  );
  return queue;
}

const counted = (work: () => Promise<unknown>) =>
  countCosts({ redis, url: server.url }, work, ROUNDS);

/** Script calls, and all commands including those of scripts, without those that depend on time. */
async function usageOf(
  work: () => Promise<unknown>,
): Promise<{ readonly scripts: number; readonly commands: number }> {
  const seen = await commandsDuring({ redis, url: server.url }, work);
  const count = { scripts: 0, commands: 0 };
  let isIgnored = false;
  for (const { args, byScript } of seen) {
    // The commands of a script follow its call. BullMQ looks for stalled jobs at intervals.
    if (!byScript)
      isIgnored = ROUNDS.includes(args[1] ?? "") || args[3]?.endsWith(":stalled") === true;
    if (isIgnored) continue;
    count.commands += 1;
    if (/^eval(sha)?$/i.test(args[0] ?? "")) count.scripts += 1;
  }
  return count;
}

/** The costs of the same work with few and with many waiting keys. */
async function compare(
  work: (queue: WorkQueue) => Promise<unknown>,
): Promise<{ readonly small: RedisCosts; readonly large: RedisCosts }> {
  const [few, many] = [await openWith(SMALL), await openWith(LARGE)];
  return { small: await counted(() => work(few)), large: await counted(() => work(many)) };
}

describe("costs do not grow with the number of waiting keys:", () => {
  test.each<[string, (queue: WorkQueue) => Promise<unknown>]>([
    ["a request of a new key", (queue) => queue.request(keyOf("new"), trigger)],
    ["a request that joins", (queue) => queue.request(waitingKey(7), trigger)],
    [
      "a request by a user, which moves the key forward",
      (queue) => queue.request(waitingKey(8), { kind: "http" }, { class: "interactive" }),
    ],
    ["a timer", (queue) => queue.requestAt(waitingKey(9), Date.now() + 3_600_000)],
    ["the state of a key", (queue) => queue.getKey(waitingKey(10))],
    ["the state of a request", (queue) => queue.getRequest(`${formatKey(waitingKey(11))}@1`)],
    ["the counts", (queue) => queue.counts()],
    ["the backlog", (queue) => queue.backlog()],
    ["the check for data loss", (queue) => queue.incarnation()],
    ["a page of keys", (queue) => queue.control.listKeys({ limit: 50 })],
    [
      "a page of dead-lettered keys",
      (queue) => queue.control.listKeys({ phase: "deadLettered", limit: 50 }),
    ],
    [
      "a cancellation",
      (queue) =>
        queue.control.cancel(`${formatKey(waitingKey(12))}@1`, { by: "test", reason: "test" }),
    ],
  ])("%s", async (_what, work) => {
    const { small, large } = await compare(work);
    expect(large.calls).toBeLessThanOrEqual(small.calls + OPENING);
    expect(large.entries).toBeLessThanOrEqual(small.entries + PAGE_REST + NOISE);
  });

  test("attempts, from the fetch to the end", async () => {
    const ATTEMPTS = 25;
    const { small, large } = await compare(async (queue) => {
      const held = hold();
      const worker = workOn(
        queue,
        async () => {
          if (worker.started.length > ATTEMPTS) await held.wait();
          return { kind: "done" };
        },
        { concurrency: 1 },
      );
      await until("the attempts", () => worker.started.length === ATTEMPTS + 1);
      held.release();
      worker.pause();
    });
    expect(large.calls).toBeLessThanOrEqual(small.calls + NOISE);
    expect(large.entries).toBeLessThanOrEqual(small.entries + NOISE);
  });

  test.each([
    // Of a script, 13 commands and the call itself are per call, and 10 per attempt.
    { slots: 1, scripts: 1, commands: 24 },
    { slots: 8, scripts: 1 / 8, commands: 14 / 8 + 10 },
    { slots: 10, scripts: 2 / 10, commands: (2 * 14) / 10 + 10 },
    { slots: 50, scripts: 7 / 50, commands: (7 * 14) / 50 + 10 },
  ])("attempts that end together, $slots slots", async ({ slots, scripts, commands }) => {
    const [FEW, MANY] = [2 * slots, 12 * slots];
    const take = async (keys: number) => {
      const queue = await openWith(keys);
      let full = hold();
      let running = 0;
      return await usageOf(async () => {
        const worker = workOn(
          queue,
          async () => {
            const round = full;
            running += 1;
            if (running === slots) {
              [full, running] = [hold(), 0];
              round.release();
            }
            await round.wait();
            return { kind: "done" };
          },
          { concurrency: slots },
        );
        await until("all attempts", () => worker.closed.length === keys);
        await worker.stop();
      });
    };
    const [few, many] = [await take(FEW), await take(MANY)];
    const perAttempt = (of: "scripts" | "commands") => (many[of] - few[of]) / (MANY - FEW);
    expect(perAttempt("scripts")).toBeLessThanOrEqual(scripts * 1.1);
    expect(perAttempt("commands")).toBeLessThanOrEqual(commands * 1.04);
  });

  test("a key at rest has a small hash without its requests", async () => {
    const queue = await openWith(0);
    const worker = workOn(queue, async () => ({ kind: "done" }));
    const key = waitingKey(0);
    await queue.request(key, { ...trigger, by: "a text of more than 64 characters".repeat(3) });
    await until("the attempt", () => worker.closed.length === 1);
    await worker.stop();
    const { keyHash } = queueNames(`costs-${opened}`, CLUSTER, CONTROLLER);
    const hash = keyHash(formatKey(key));
    expect(await redis.object("ENCODING", hash)).toMatch(/^(listpack|ziplist)$/);
    expect(Object.keys(await redis.hgetall(hash)).toSorted()).toEqual(
      [
        ["attempts", "covered", "endedAt", "epoch", "finished"],
        ["number", "outcome", "owner", "pending"],
      ].flat(),
    );
  });

  test("a record takes less than half its text, and is read as it was written", async () => {
    const queue = await openWith(0);
    const key = waitingKey(0);
    const id = formatKey(key);
    const recordOf = (epoch: number) =>
      loggedRecord(epoch, []).replaceAll('"x', `"${id}`).replace('"log":[],', "");
    const worker = workOn(queue, async ({ epoch }) => ({
      outcome: { kind: "done" },
      record: recordOf(epoch),
    }));
    for (const count of [1, 2, 3]) {
      await queue.request(key, trigger);
      await until("the attempt", () => worker.closed.length === count);
    }
    await worker.stop();
    const entries = await redis.lrange(
      queueNames(`costs-${opened}`, CLUSTER, CONTROLLER).attempts(id),
      0,
      -1,
    );
    // The line before it has its times, counts and worker.
    const packed = entries.map((entry) => entry.split("\n").slice(2).join("\n"));
    for (const text of packed) expect(text.length).toBeLessThan(recordOf(1).length / 2);
    const attempts = await queue.listAttempts(key, { limit: 3 });
    expect(attempts.map(({ record }) => record)).toEqual([3, 2, 1].map(recordOf));
  });

  test("keys of a backlog do not age after their attempts", async () => {
    const queue = await openWith(0);
    // Of one tenant, so that they wait for each other.
    await Promise.all(
      Array.from({ length: SMALL }, (_, index) => queue.submit(keyOf(`key-${index}`), trigger)),
    );
    const { aging } = queueNames(`costs-${opened}`, CLUSTER, CONTROLLER);
    expect(await redis.zcard(aging)).toBeGreaterThan(0);
    const worker = workOn(queue, async () => ({ kind: "done" }), { concurrency: 10 });
    await until("the attempts", () => worker.closed.length === SMALL);
    await worker.stop();
    expect(await redis.zcard(aging)).toBe(0);
  });

  test("a round of the elected process", async () => {
    const round = async (prefix: string) => {
      const names = queueNames(prefix, CLUSTER, CONTROLLER);
      const { pumps, timers, firing, resuming, aborts, fair, aging, bullWaiting, bullRoot } = names;
      const queue = { timers, firing, resuming, aborts, aging, fair, waiting: bullWaiting };
      const args = { hashes: names.keyRoot, bull: names.bullRoot, limit: 200 };
      await runScript(redis, pumpScript, {
        keys: { pumps },
        args: { owner: "test", electMs: 1, claimMs: 1, limit: 100 },
        each: [
          {
            ...queue,
            returned: `${bullRoot}wait`,
            delayed: `${bullRoot}delayed`,
            active: `${bullRoot}active`,
            queue: "q",
            isActive: true,
            fires: true,
          },
        ],
      });
      await runScript(redis, ageScript, {
        keys: { fair, aging },
        args: { ...args, ageMs: NOT_DUE_MS, weights: "" },
        each: [],
      });
      await runScript(redis, rebaseScript, {
        keys: { fair },
        args: { ...args, after: 1_000_000 },
      });
    };
    const cost = async (waiting: number) => {
      await openWith(waiting);
      const prefix = `costs-${opened}`;
      // The first round stores the weights.
      await round(prefix);
      return await countCosts({ redis, url: server.url }, () => round(prefix));
    };
    const [small, large] = [await cost(SMALL), await cost(LARGE)];
    expect(large.entries).toBeLessThanOrEqual(small.entries + NOISE);
  });

  test("the first requests of a resync, per key", async () => {
    const resync = async (size: number) => {
      const queue = await openWith(0);
      const { calls, entries } = await counted(() =>
        Promise.all(
          Array.from({ length: size }, (_, index) => queue.submit(waitingKey(index), trigger)),
        ),
      );
      return { calls: calls / size, entries: entries / size };
    };
    const [small, large] = [await resync(SMALL), await resync(LARGE)];
    expect(large.calls).toBeLessThanOrEqual(small.calls * 1.2);
    expect(large.entries).toBeLessThanOrEqual(small.entries * 1.2);
  });
});
