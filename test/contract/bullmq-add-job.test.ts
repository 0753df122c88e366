import { defineScript, runScript } from "@konverge/redis";
import { Worker, type Queue } from "bullmq";
import * as fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import { addJobPart, BACKOFF_TYPE } from "../../libs/queue/src/scripts/add-job.ts";
import { useBull } from "./bull.ts";
import { isLongRun, seed } from "../support/test-run.ts";

/** Compares the script with BullMQ's `add`: each changes a queue, and both queues must be equal. */

const bull = useBull();
const TOKEN = "t";
const RUNS = isLongRun ? 500 : 50;
const KEYS = ["a", "c/d.e%2F"];
/** In the past, so that promoted jobs are due. */
const PAST_MS = 1_700_000_000_000;
const LAST_ADD_MS = PAST_MS + 9;
const LATER_MS = 4_000_000_000_000;

const addScript = defineScript(
  {
    name: "add-job-alone",
    keys: ["bull"],
    args: { member: "text", priority: "number", wake: "flag", now: "text" },
  } as const,
  {
    lua: "addJob(bull, member, priority, wake, false, false, now, 1)\nannounceJobs(bull)",
    include: [addJobPart],
    answer: (reply) => reply,
  },
);

interface Add {
  readonly key: string;
  readonly priority: number;
  readonly wake: boolean;
  readonly atMs: number;
}

interface Side {
  readonly queue: Queue;
  readonly worker: Worker;
  readonly add: (add: Add) => Promise<unknown>;
}

const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.close(true)));
});

async function openSide(name: string, add: (side: Side, add: Add) => Promise<unknown>) {
  const prefix = `${bull.prefix}:${name}`;
  const queue = bull.open({ prefix });
  const worker = new Worker(bull.name, undefined, {
    connection: { url: bull.url, maxRetriesPerRequest: null },
    prefix,
    autorun: false,
    removeOnComplete: { count: 0 },
  });
  workers.push(worker);
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  const side: Side = { queue, worker, add: (asked) => add(side, asked) };
  return side;
}

const openTheirs = (name: string) =>
  openSide(name, ({ queue }, { key, priority, wake, atMs }) =>
    queue.add(
      "reconcile",
      { key },
      {
        attempts: Number.MAX_SAFE_INTEGER,
        backoff: { type: BACKOFF_TYPE },
        stackTraceLimit: 1,
        priority,
        timestamp: atMs,
        deduplication: { id: key, keepLastIfActive: true, reschedule: wake },
      },
    ),
  );
const openOurs = (name: string) =>
  openSide(name, ({ queue }, { key, priority, wake, atMs }) =>
    runScript(bull.redis, addScript, {
      keys: { bull: queue.toKey("") },
      args: { member: key, priority, wake, now: atMs },
    }),
  );

/** Returns the data of a queue, with keys in place of job ids: joining a waiting job consumes a BullMQ id. */
async function view({ queue }: Side): Promise<unknown> {
  const { redis } = bull;
  const root = queue.toKey("");
  const nameOf = async (id: string) => (await redis.hget(root + id, "deid")) ?? `gone ${id}`;
  const ids = async (list: readonly string[]) => await Promise.all(list.map(nameOf));
  const scores = async (set: string) => {
    const found: [string, number][] = [];
    const flat = await redis.zrange(root + set, "0", "-1", "WITHSCORES");
    for (let i = 0; i < flat.length; i += 2) {
      found.push([await nameOf(flat[i] ?? ""), Number(flat[i + 1])]);
    }
    // Redis orders equal scores by id, and the ids of both sides differ.
    return found.toSorted(
      ([one, first], [other, second]) => first - second || one.localeCompare(other),
    );
  };
  const jobs: unknown[] = [];
  for (const key of KEYS) {
    const owner = await redis.get(`${root}de:${key}`);
    const job = owner === null ? {} : await redis.hgetall(root + owner);
    const parked = await redis.hgetall(`${root}dn:${key}`);
    jobs.push([key, owner !== null, essence(job), essence(parked)]);
  }
  return {
    jobs,
    places: (await scores("prioritized")).map(([key, score]) => [key, Math.floor(score / 2 ** 32)]),
    delayed: await scores("delayed"),
    active: await ids(await redis.lrange(`${root}active`, 0, -1)),
    wait: await ids(await redis.lrange(`${root}wait`, 0, -1)),
    marker: await redis.zrange(`${root}marker`, "0", "-1", "WITHSCORES"),
    jobsStored: (await redis.keys(`${root}[0-9]*`)).filter((name) => !name.endsWith(":lock"))
      .length,
  };
}

/** Omits ids, times, and options that repeat job fields. */
function essence(fields: Record<string, string>): unknown {
  const { name, data, opts, deid, priority, delay, timestamp } = fields;
  const job = {
    name,
    data,
    deid,
    priority,
    starts: fields["ats"],
    isDelayed: delay !== "0",
    timestamp: Number(timestamp) > LAST_ADD_MS ? "when the follow-up was made" : timestamp,
  };
  if (opts === undefined) return job;
  const { attempts, backoff, stackTraceLimit } = JSON.parse(opts) as Record<string, unknown>;
  // BullMQ's own encoder rounds the attempts.
  return { ...job, opts: { attempts: Number(attempts).toPrecision(10), backoff, stackTraceLimit } };
}

type Step =
  | ({ readonly kind: "add" } & Add)
  | { readonly kind: "take" | "complete" | "delay" | "loseJob" | "pause" | "resume" }
  | { readonly kind: "limit"; readonly concurrency: number };

async function apply(side: Side, step: Step): Promise<void> {
  const { queue, worker } = side;
  switch (step.kind) {
    case "add":
      await side.add(step);
      return;
    case "take":
      // A worker waits on this key first.
      await bull.redis.zpopmin(queue.toKey("marker"));
      await worker.getNextJob(TOKEN, { block: false });
      return;
    case "complete":
      await (await queue.getActive())[0]?.moveToCompleted(undefined, TOKEN, false);
      return;
    case "delay":
      await (await queue.getActive())[0]?.moveToDelayed(LATER_MS, TOKEN);
      return;
    case "loseJob": {
      // The state after an outage: the deduplication key without its job.
      const [job] = await queue.getDelayed();
      if (job?.id === undefined) return;
      await bull.redis.zrem(queue.toKey("delayed"), job.id);
      await bull.redis.del(queue.toKey(job.id));
      return;
    }
    case "pause":
      await queue.pause();
      return;
    case "resume":
      await queue.resume();
      return;
    case "limit":
      await queue.setGlobalConcurrency(step.concurrency);
      return;
  }
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant("add" as const),
        key: fc.constantFrom(...KEYS),
        priority: fc.integer({ min: 1, max: 4 }),
        wake: fc.boolean(),
        atMs: fc.integer({ min: PAST_MS, max: LAST_ADD_MS }),
      }),
    },
    { weight: 3, arbitrary: fc.constant<Step>({ kind: "take" }) },
    {
      weight: 2,
      arbitrary: fc.constantFrom<Step>({ kind: "complete" }, { kind: "delay" }),
    },
    {
      weight: 2,
      arbitrary: fc.constantFrom<Step>(
        { kind: "loseJob" },
        { kind: "pause" },
        { kind: "resume" },
        { kind: "limit", concurrency: 1 },
        { kind: "limit", concurrency: 2 },
      ),
    },
  ),
  { minLength: 10, maxLength: 40 },
);

test("leaves every queue as BullMQ's add would, for all job states", async () => {
  console.log(`KONVERGE_TEST_SEED=${seed}`);
  let serial = 0;
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const run = serial++;
      const [theirs, ours] = [await openTheirs(`theirs-${run}`), await openOurs(`ours-${run}`)];
      for (const [at, step] of sequence.entries()) {
        await Promise.all([apply(theirs, step), apply(ours, step)]);
        expect({ at, ...((await view(ours)) as object) }).toEqual({
          at,
          ...((await view(theirs)) as object),
        });
      }
      await Promise.all(workers.splice(0).map((worker) => worker.close(true)));
    }),
    { numRuns: RUNS, seed },
  );
});
