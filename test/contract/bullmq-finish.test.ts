import { formatKey } from "@konverge/core";
import { createWorkQueue, type WorkQueue } from "@konverge/queue";
import { Queue, Worker, type Job } from "bullmq";
import * as fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import {
  createAttemptStore,
  type AttemptStore,
  type EndCall,
} from "../../libs/queue/src/attempt/attempt-store.ts";
import { planEnd } from "../../libs/queue/src/attempt/end-plan.ts";
import { createSlotBackend, type SlotBackend } from "../../libs/queue/src/attempt/slot-backend.ts";
import type { JobPayload } from "../../libs/queue/src/keys/job-payload.ts";
import { queueNames, type QueueNames } from "../../libs/queue/src/keys/queue-names.ts";
import type { Begun } from "../../libs/queue/src/scripts/begun.ts";
import { useBull } from "./bull.ts";
import { isLongRun, seed } from "../support/test-run.ts";

/**
 * Compares the combined call at the end of an attempt with its parts: `end`, BullMQ's own finish and fetch, and `begin`. Each
 * changes a queue, and all data of both queues must be equal, except for BullMQ's events and for needless markers.
 */

const bull = useBull();
const RUNS = isLongRun ? 200 : 40;
/** Ends the search for a smaller counterexample, and the test on a busy machine. */
const LONGEST_MS = 60_000;
const KEYS = ["a", "b", "c", "d"];
const SLOTS = [0, 1, 2];
const LATER_MS = 4_000_000_000_000;
/** BullMQ's scores of delayed jobs are milliseconds times this unit, and a counter. */
const DELAYED_UNIT = 4_096;
const LEASE_MS = 600_000;
const OWNER = { controller: "c", cluster: "default" };
const BACKOFFS = { backoffs: {} as never, maxFailures: Infinity, random: () => 0 };
const BY = { by: "test", reason: "test" };

interface Held {
  readonly job: Job<JobPayload>;
  readonly owner: string;
  readonly begun: Begun | undefined;
}

interface Side {
  readonly prefix: string;
  readonly names: QueueNames;
  readonly work: WorkQueue;
  readonly queue: Queue;
  readonly worker: Worker<JobPayload>;
  readonly store: AttemptStore;
  /** Undefined for the side that uses BullMQ's own scripts. */
  readonly slots: SlotBackend | undefined;
  readonly held: Map<number, Held>;
  readonly nextOwner: () => string;
}

const opened: Side[] = [];
afterEach(closeAll);
async function closeAll(): Promise<void> {
  await Promise.all(
    opened.splice(0).map(async ({ worker, work, queue }) => {
      await Promise.all([worker.close(true), work.close(), queue.close()]);
    }),
  );
}

/** Jobs that combined calls finished, and those that they fetched. */
const combined = { finished: 0, fetched: 0 };

function counting(store: AttemptStore): Pick<AttemptStore, "end" | "advance"> {
  return {
    end: (call) => store.end(call),
    async advance(call) {
      const advanced = await store.advance(call);
      if (advanced.isFinished) combined.finished += 1;
      if (advanced.next !== undefined) combined.fetched += 1;
      return advanced;
    },
  };
}

async function openSide(name: string, isCombined: boolean): Promise<Side> {
  const prefix = `${bull.prefix}:${name}`;
  const names = queueNames(prefix, OWNER.cluster, OWNER.controller);
  let owners = 0;
  const nextOwner = () => `o${(owners += 1)}`;
  const store = createAttemptStore({
    redis: bull.redis,
    names,
    workerId: "w",
    leaseMs: LEASE_MS,
    maxLost: 100,
    fence: undefined,
  });
  const slots = isCombined ? createSlotBackend({ store: counting(store), nextOwner }) : undefined;
  const options = {
    connection: bull.redis.duplicate({ maxRetriesPerRequest: null }),
    prefix: names.bullPrefix,
    autorun: false,
    lockDuration: LEASE_MS,
    removeOnComplete: { count: 0 },
  };
  const worker =
    slots === undefined
      ? new Worker<JobPayload>(names.bullName, undefined, options)
      : new Worker<JobPayload>(names.bullName, undefined, options, slots.factory);
  const queue = new Queue(names.bullName, {
    connection: { url: bull.url },
    prefix: names.bullPrefix,
  });
  const work = createWorkQueue({ redis: { url: bull.url, deadlineMs: 60_000 }, prefix, ...OWNER });
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  const side = { prefix, names, work, queue, worker, store, slots, held: new Map(), nextOwner };
  opened.push(side);
  return side;
}

/** True if a worker that waits would be woken for a waiting job. */
async function wakes({ names }: Side): Promise<boolean> {
  const { redis } = bull;
  const [waiting, queued, marker] = await Promise.all([
    redis.zcard(names.bullWaiting),
    redis.llen(`${names.bullRoot}wait`),
    redis.zscore(`${names.bullRoot}marker`, "0"),
  ]);
  return marker !== null && waiting + queued > 0;
}

/** Returns all data of a queue, without its names and times. */
async function view({ prefix, held }: Side): Promise<unknown> {
  const { redis } = bull;
  const found: Record<string, unknown> = {};
  for await (const page of redis.scanStream({ match: `${prefix}:*`, count: 1_000 })) {
    for (const name of page as string[]) {
      if (!/:(events|marker)$/.test(name)) found[name.slice(prefix.length)] = await read(name);
    }
  }
  const slots = SLOTS.map((slot) => {
    const { job, begun } = held.get(slot) ?? {};
    return [job?.id, job?.data, job?.attemptsStarted, job?.priority, job?.opts, withoutWait(begun)];
  });
  // Without milliseconds since 1970.
  const text = JSON.stringify({ found, slots }).replaceAll(/"delay":"\d{12,}"/g, '"delay":"long"');
  return JSON.parse(text.replaceAll(/(?<!\d)1[6-9]\d{11}(?!\d)/g, "1000000000000")) as unknown;
}

/** The rest of a lease differs by the time between the two sides. */
function withoutWait(begun: Begun | undefined): unknown {
  return begun?.kind === "busy" ? { kind: begun.kind } : begun;
}

async function read(name: string): Promise<unknown> {
  const { redis } = bull;
  switch (await redis.type(name)) {
    case "hash": {
      // Owners are counted in the order of the calls; BullMQ stores its default on the first use.
      const { owner, "opts.maxLenEvents": _, ...fields } = await redis.hgetall(name);
      return owner === undefined ? fields : { ...fields, isOwned: owner !== "" };
    }
    case "zset": {
      const flat = await redis.zrange(name, "0", "-1", "WITHSCORES");
      const pairs = flat.flatMap((member, at) => (at % 2 === 0 ? [[member, flat[at + 1]]] : []));
      if (name.endsWith(":prioritized")) return pairs;
      const isDelayed = name.endsWith(":delayed");
      // Jobs that are due differ by the time between the two sides.
      const isDue = (score: unknown) => isDelayed && Number(score) < LATER_MS * DELAYED_UNIT;
      return pairs.map(([id, score]) => [id, isDue(score) ? "due" : score]).toSorted();
    }
    case "list":
      return await redis.lrange(name, 0, -1);
    case "set":
      return (await redis.smembers(name)).toSorted();
    default:
      return await redis.get(name);
  }
}

type Step =
  | { readonly kind: "request"; readonly key: string; readonly urgent: boolean }
  | { readonly kind: "take"; readonly slot: number }
  | {
      readonly kind: "end";
      readonly slots: readonly number[];
      readonly fetches: boolean;
      readonly isReplyLost: boolean;
    }
  | {
      readonly kind: "delay" | "loseLock" | "takeLock" | "steal" | "abort";
      readonly slot: number;
    }
  | { readonly kind: "pauseKey" | "resumeKey" | "rival"; readonly key: string }
  | {
      readonly kind:
        | "pause"
        | "resume"
        | "promote"
        | "findStalled"
        | "foreign"
        | "queued"
        | "unlimit";
    }
  | { readonly kind: "limit"; readonly concurrency: number };

const slot = fc.constantFrom(...SLOTS);
const key = fc.constantFrom(...KEYS);
const common: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("request" as const), key, urgent: fc.boolean() }),
  fc.record({ kind: fc.constant("take" as const), slot }),
  fc.record({
    kind: fc.constant("end" as const),
    slots: fc.uniqueArray(slot, { minLength: 1, maxLength: 3 }),
    fetches: fc.constantFrom(true, true, false),
    isReplyLost: fc.boolean(),
  }),
);
const rare: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom("delay", "loseLock", "takeLock", "steal", "abort"), slot }),
  fc.record({ kind: fc.constantFrom("pauseKey", "resumeKey", "rival"), key }),
  fc.record({ kind: fc.constantFrom("promote", "findStalled", "foreign", "queued") }),
);
const rarer: fc.Arbitrary<Step[]> = fc.constantFrom<Step[]>(
  [{ kind: "pause" }, { kind: "resume" }],
  [{ kind: "limit", concurrency: 1 }, { kind: "unlimit" }],
  [{ kind: "limit", concurrency: 2 }, { kind: "unlimit" }],
);
const calm = fc.array(fc.oneof({ weight: 8, arbitrary: common }, { weight: 1, arbitrary: rare }), {
  minLength: 10,
  maxLength: 40,
});
/** Some steps, some in a paused or limited queue, and some more. */
const steps: fc.Arbitrary<Step[]> = fc
  .tuple(calm, rarer, fc.array(common, { maxLength: 8 }), calm)
  .map(([before, [first, last], between, after]) => [
    ...before,
    ...(first === undefined || last === undefined ? [] : [first, ...between, last]),
    ...after,
  ]);

const objectOf = (name: string) => ({
  ...OWNER,
  resource: "configmaps",
  group: "",
  namespace: "n",
  name,
});
const tokenOf = (at: number) => `t${at}`;

async function hold(side: Side, at: number, job: Job<JobPayload> | undefined): Promise<void> {
  side.held.delete(at);
  if (job === undefined) return;
  const early = side.slots?.take(job, tokenOf(at));
  if (early !== undefined) {
    side.held.set(at, { job, owner: early.owner, begun: early.begun });
    return;
  }
  const owner = side.nextOwner();
  const id = job.data.key as string | undefined;
  const begun = id === undefined ? undefined : await side.store.begin(id, owner);
  side.held.set(at, { job, owner, begun });
}

function endOf({ job, owner, begun }: Held): EndCall | undefined {
  if (begun?.kind !== "run") return undefined;
  const plan = planEnd({ kind: "done" }, begun, BACKOFFS);
  const texts = { errorCode: "", errorMessage: "", record: "{}" };
  return { id: job.data.key, begun, owner, outcome: "done", plan, ...texts };
}

type Finished = { readonly next?: Job<JobPayload> | undefined; readonly error?: string };

/** As BullMQ's worker does. */
async function finish(side: Side, at: number, fetches: boolean): Promise<Finished> {
  const { job } = side.held.get(at) as Held;
  try {
    const next = await job.moveToCompleted(undefined, tokenOf(at), fetches);
    if (!Array.isArray(next)) return {};
    const [data, id, , delayedUntil] = next as [never, string, number, number];
    // The next due time is a hint for the next blocking read.
    expect(delayedUntil ?? 0).toBeGreaterThanOrEqual(0);
    return { next: await side.worker["nextJobFromJobData"](data, id, tokenOf(at)) };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

async function end(side: Side, step: Step & { readonly kind: "end" }): Promise<unknown> {
  const { names, held } = side;
  const ending = step.slots.filter((at) => held.has(at));
  // Slots whose jobs BullMQ's own script finishes come last, as in the combined call.
  const isOdd = async (at: number) => {
    const { job } = held.get(at) as Held;
    const isParked = await bull.redis.exists(`${names.bullRoot}dn:${job.data.key}`);
    const lock = await bull.redis.get(`${names.bullRoot}${job.id}:lock`);
    const isDeduplicated = job.deduplicationId === job.data.key;
    const isAlone = endOf(held.get(at) as Held) === undefined || !isDeduplicated;
    const fields = await bull.redis.hmget(names.keyHash(job.data.key), "epoch");
    const { begun } = held.get(at) as Held;
    const isFenced = begun?.kind === "run" && fields[0] !== String(begun.epoch);
    return isParked === 1 || lock !== tokenOf(at) || isAlone || isFenced;
  };
  const odd = new Set<number>();
  for (const at of ending) if (await isOdd(at)) odd.add(at);
  // The plain ones share a call.
  const groups = [
    ending.filter((at) => !odd.has(at)),
    ...ending.filter((at) => odd.has(at)).map((at) => [at]),
  ];
  const results: unknown[] = [];
  for (const group of groups) results.push(await endTogether(side, group, step.fetches));
  return results;
}

async function endTogether(side: Side, group: readonly number[], fetches: boolean) {
  const { held, store, slots } = side;
  const ended = group.map((at) => {
    const { job } = held.get(at) as Held;
    const call = endOf(held.get(at) as Held);
    if (call === undefined) return Promise.resolve(undefined);
    return (slots === undefined ? store.end(call) : slots.end(job, call)).answer;
  });
  const finished: Finished[] = [];
  if (slots === undefined) {
    await Promise.all(ended);
    for (const at of group) finished.push(await finish(side, at, fetches));
  } else {
    finished.push(...(await Promise.all(group.map((at) => finish(side, at, fetches)))));
  }
  for (const [n, at] of group.entries()) await hold(side, at, finished[n]?.next);
  return [group, await Promise.all(ended), finished.map(({ error, next }) => [error, next?.id])];
}

/** Executes each combined call twice, as after a lost reply. */
async function losingReplies(store: AttemptStore, work: () => Promise<unknown>): Promise<unknown> {
  const once = { ...store };
  const twice: AttemptStore["advance"] = async (call) => {
    await once.advance(call);
    return await once.advance(call);
  };
  Object.assign(store, { advance: twice });
  try {
    return await work();
  } finally {
    Object.assign(store, once);
  }
}

async function apply(side: Side, step: Step): Promise<unknown> {
  const { names, queue, work, worker, held } = side;
  const { redis } = bull;
  switch (step.kind) {
    case "request":
      await work.request(
        objectOf(step.key),
        { kind: "watch" },
        step.urgent ? { class: "interactive" } : {},
      );
      return;
    case "take":
      if (held.has(step.slot)) return;
      await redis.zpopmin(`${names.bullRoot}marker`);
      await hold(side, step.slot, await worker.getNextJob(tokenOf(step.slot), { block: false }));
      return;
    case "end":
      return step.isReplyLost
        ? await losingReplies(side.store, () => end(side, step))
        : await end(side, step);
    case "delay": {
      const { job } = held.get(step.slot) ?? {};
      held.delete(step.slot);
      return await job?.moveToDelayed(LATER_MS, tokenOf(step.slot)).catch(String);
    }
    case "loseLock":
    case "takeLock": {
      const id = held.get(step.slot)?.job.id;
      if (id === undefined) return;
      if (step.kind === "loseLock") await redis.del(`${names.bullRoot}${id}:lock`);
      else await redis.set(`${names.bullRoot}${id}:lock`, "of another worker");
      return;
    }
    case "steal":
    case "abort": {
      const { job, begun } = held.get(step.slot) ?? {};
      if (job === undefined || begun?.kind !== "run") return;
      if (step.kind === "steal") await redis.hincrby(names.keyHash(job.data.key), "epoch", 1);
      else await redis.hset(names.aborts, job.data.key, begun.epoch);
      return;
    }
    case "pauseKey":
      await work.control.pause({ kind: "key", key: objectOf(step.key) }, BY).catch(String);
      return;
    case "resumeKey":
      return await work.control.resume({ kind: "key", key: objectOf(step.key) }, BY).then(
        () => "resumed",
        () => "not paused",
      );
    case "rival":
      // What bull-board's "add" and "duplicate" do: a job of the key without deduplication.
      await queue.add("reconcile", { key: formatKey(objectOf(step.key)) }, { priority: 1 });
      return;
    case "pause":
      await queue.pause();
      return;
    case "resume":
      await queue.resume();
      return;
    case "promote":
      for (const job of await queue.getDelayed())
        await redis.zadd(`${names.bullRoot}delayed`, 0, job.id ?? "");
      return;
    case "findStalled": {
      const ids = await redis.lrange(`${names.bullRoot}active`, 0, -1);
      if (ids.length > 0) await redis.sadd(`${names.bullRoot}stalled`, ...ids);
      return;
    }
    case "foreign":
      await queue.add("foreign", { v: 1 }, { priority: 1 });
      return;
    case "queued":
      await queue.add("foreign", { v: 2 });
      return;
    case "limit":
      await queue.setGlobalConcurrency(step.concurrency);
      return;
    case "unlimit":
      await queue.removeGlobalConcurrency();
      return;
  }
}

test("leaves every queue as the separate calls would, for all job states", async () => {
  console.log(`KONVERGE_TEST_SEED=${seed}`);
  let serial = 0;
  Object.assign(combined, { finished: 0, fetched: 0 });
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const run = serial++;
      const theirs = await openSide(`t${run}`, false);
      const ours = await openSide(`o${run}`, true);
      for (const [at, step] of sequence.entries()) {
        const results = [await apply(theirs, step), await apply(ours, step)];
        expect({ at, step, result: results[1] }).toEqual({ at, step, result: results[0] });
        expect([at, step, await wakes(ours)]).toEqual([at, step, await wakes(theirs)]);
        expect({ at, step, view: await view(ours) }).toEqual({
          at,
          step,
          view: await view(theirs),
        });
      }
      await closeAll();
    }),
    { numRuns: RUNS, seed, interruptAfterTimeLimit: LONGEST_MS },
  );
  // Otherwise the test compares BullMQ with itself. A busy machine ends after fewer lives than asked for.
  expect(combined.finished).toBeGreaterThan(serial / 2);
  expect(combined.fetched).toBeGreaterThan(serial / 4);
});

/** A side that holds the job of one request. */
async function openBusy(store: Partial<AttemptStore> = {}): Promise<Side> {
  const side = await openSide("busy", true);
  Object.assign(side.store, store);
  await apply(side, { kind: "request", key: "a", urgent: false });
  await apply(side, { kind: "take", slot: 0 });
  return side;
}
const endAlone = (side: Side) => {
  const held = side.held.get(0) as Held;
  return side.slots?.end(held.job, endOf(held) as EndCall).answer;
};
const stateOf = async ({ queue, names, held }: Side) => [
  await queue.getActiveCount(),
  await bull.redis.hget(names.keyHash(held.get(0)?.job.data.key ?? ""), "outcome"),
];

test("stores the end alone if BullMQ does not finish the job, because its worker is closed", async () => {
  const side = await openBusy();
  expect(await endAlone(side)).toEqual({ fenced: false, priority: 0 });
  expect(await stateOf(side)).toEqual([1, "done"]);
});

test("BullMQ finishes the job if Redis rejects the combined call; the caller stores the end", async () => {
  const side = await openBusy({
    advance: () => Promise.reject(new Error("BUSY Redis is busy running a script")),
  });
  const [ended, finished] = await Promise.allSettled([endAlone(side), finish(side, 0, true)]);
  expect(finished).toEqual({ status: "fulfilled", value: { next: undefined } });
  expect(ended).toMatchObject({
    status: "rejected",
    reason: { message: expect.stringContaining("BUSY") as string },
  });
  expect(await stateOf(side)).toEqual([0, null]);
});

test("a key whose data has another type does not affect the jobs of other slots", async () => {
  const side = await openBusy();
  await apply(side, { kind: "request", key: "b", urgent: false });
  await bull.redis.del(side.names.keyHash(formatKey(objectOf("b"))));
  await bull.redis.set(side.names.keyHash(formatKey(objectOf("b"))), "text");
  const ended = endAlone(side);
  const { next } = await finish(side, 0, true);
  expect(await ended).toEqual({ fenced: false, priority: 0 });
  expect([next?.data.key, next && side.slots?.take(next, tokenOf(0))]).toEqual([
    formatKey(objectOf("b")),
    undefined,
  ]);
});
