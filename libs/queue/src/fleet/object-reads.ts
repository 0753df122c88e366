import { randomUUID } from "node:crypto";
import { sleepMs } from "@konverge/core";
import {
  clusterRoot,
  openConsumer,
  openProducer,
  closeRedis,
  withRedis,
  type RedisClient,
  type RedisTarget,
} from "@konverge/redis";
import {
  beginPlan,
  holdPlan,
  planRequestsKey,
  planWakesKey,
  storePlan,
  type PlanClass,
  type PlanPlace,
  type WantedPlan,
} from "../plans/plan-store.ts";
import { PlanPace, type AttemptCounts } from "./plan-pace.ts";

/** The object that a user of the API wants to see. */
export interface ObjectRead {
  readonly controller: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** A read as stored. */
interface StoredRead extends ObjectRead {
  readonly id: string;
}

/** Longest time that a caller waits, in ms. */
const WAIT_MS = 5_000;
/** The answer of a worker for a caller that has gone, in ms. */
const KEPT_MS = 15_000;
/** Most reads of a controller that wait for a worker; older ones are dropped, and their callers time out. */
const MOST_WAITING = 50;
/** Most reads that a worker serves at a time. */
const MOST_RUNNING = 8;
/** Maximum number of concurrent plans of a worker. Each plan is an attempt in addition to those of the queue. */
const MOST_PLANS = 2;
/** One more plan begins if a user waits for it, so that plans of the fleet do not delay it. */
const MOST_PLANS_OF_USERS = MOST_PLANS + 1;
/** Shortest blocking read, in ms: Redis before 7.0.8 rounds 1 ms down to 0, which blocks forever (redis#11688). */
const SHORTEST_BLOCK_MS = 2;
/** Longest blocking read, in s. Ends it if the connection is lost without a notice. */
const BLOCK_S = 10;
const FIRST_LOOK_MS = 10;
const LONGEST_LOOK_MS = 160;
const AGAIN_MS = 1_000;
/** Each fails after up to 1 s, so that a plan is begun and its record is stored within its lease. */
const MOST_TRIES = 12;

export interface ObjectReadsOptions {
  readonly redis: RedisTarget;
  readonly prefix: string;
  readonly cluster: string;
  /** The controllers whose objects this worker can read. */
  readonly controllers: readonly string[];
  /** Reads an object and returns the answer as JSON, without secrets. */
  readonly read?: ((wanted: ObjectRead) => Promise<string>) | undefined;
  /** Plans the next attempt of an object, and returns its record as JSON, without secrets. */
  readonly plan?: ((wanted: WantedPlan) => Promise<string>) | undefined;
  /** Counts the attempts of this worker. Default: it has none. */
  readonly attempts?: (() => AttemptCounts) | undefined;
  readonly onError: (error: Error) => void;
}

/**
 * Serves reads and plans of objects for the HTTP API, which has neither credentials of a cluster nor the code of controllers. Each
 * is served by one worker. Returns the function that ends it.
 */
export function serveObjectReads({
  redis: target,
  prefix,
  cluster,
  controllers,
  read,
  plan,
  attempts = () => ({ active: 0, ended: 0 }),
  onError,
}: ObjectReadsOptions): () => Promise<void> {
  const consumer = openConsumer(target);
  const answers = openProducer(target);
  for (const each of [consumer.redis, answers]) each.on("error", onError);
  const place = { prefix, cluster };
  const readKeys =
    read === undefined ? [] : controllers.map((name) => requestsKey(prefix, cluster, name));
  const [userKeys, fleetKeys] = planKeysOf(place, plan === undefined ? [] : controllers);
  const wakeKey = planWakesKey(place, randomUUID());
  /** True if the loop waits, and does not accept all plans. */
  let isLimited = false;
  const reads = new Set<Promise<void>>();
  const plans = new Set<Promise<void>>();
  const pace = new PlanPace(attempts);
  let isStopped = false;
  /** ioredis never settles a command that waits for a connection when it is disconnected while it reconnects. */
  const stopping = Promise.withResolvers<null>();

  const serveRead = async (text: string) => {
    const { id, ...wanted } = JSON.parse(text) as StoredRead;
    const answer = await read?.(wanted);
    if (answer === undefined) return;
    await withRedis(answers, () =>
      answers.set(answerKey(prefix, cluster, id), answer, "PX", KEPT_MS),
    );
  };
  /** Ends the wait of the loop, which then accepts further plans. */
  const wake = async () => {
    if (!isLimited || isStopped) return;
    isLimited = false;
    await withRedis(answers, () =>
      answers
        .multi()
        .rpush(wakeKey, "")
        .pexpire(wakeKey, 1_000 * BLOCK_S)
        .exec(),
    );
  };
  const begin = (running: Set<Promise<void>>, serving: Promise<void>) => {
    const served = serving
      .catch((error: unknown) => onError(error as Error))
      .finally(() => running.delete(served));
    running.add(served);
    return served;
  };
  const loop = async () => {
    while (!isStopped) {
      try {
        if (reads.size >= MOST_RUNNING) await Promise.race(reads);
        isLimited = plans.size >= MOST_PLANS;
        const restMs = pace.restMs();
        // Redis takes the first list that has an entry.
        const keys = [
          wakeKey,
          ...readKeys,
          ...(plans.size < MOST_PLANS_OF_USERS ? userKeys : []),
          ...(isLimited || restMs > 0 ? [] : fleetKeys),
        ];
        const popped = await Promise.race([
          consumer.redis.blpop(
            ...keys,
            restMs > 0 ? Math.max(SHORTEST_BLOCK_MS, restMs) / 1_000 : BLOCK_S,
          ),
          stopping.promise,
        ]);
        if (popped === null || popped[0] === wakeKey) continue;
        const [key, text] = popped;
        if (readKeys.includes(key)) {
          void begin(reads, serveRead(text));
        } else {
          if (fleetKeys.includes(key)) pace.began();
          const wanted = JSON.parse(text) as WantedPlan;
          const served = begin(
            plans,
            servePlan(wanted, { redis: answers, place, plan, onError, stopping: stopping.promise }),
          );
          served.then(wake).catch((error: unknown) => onError(error as Error));
        }
      } catch (error) {
        // oxlint-disable-next-line typescript/no-unnecessary-condition -- changed by the returned function
        if (isStopped) return;
        onError(error as Error);
        await sleepMs(AGAIN_MS);
      }
    }
  };
  const looping = readKeys.length + userKeys.length === 0 ? Promise.resolve() : loop();
  return async () => {
    isStopped = true;
    stopping.resolve(null);
    consumer.disconnect();
    await looping;
    await Promise.all([...reads, ...plans]);
    await closeRedis(answers);
  };
}

/** Returns the lists of requests of users, and of fleets. */
function planKeysOf(place: PlanPlace, controllers: readonly string[]): [string[], string[]] {
  const keysOf = (planClass: PlanClass) =>
    controllers.map((name) => planRequestsKey(place, name, planClass));
  return [keysOf("interactive"), keysOf("background")];
}

interface PlanServing extends Pick<ObjectReadsOptions, "plan" | "onError"> {
  readonly redis: RedisClient;
  readonly place: PlanPlace;
  /** Resolves when the worker stops. */
  readonly stopping: Promise<null>;
}

async function servePlan(wanted: WantedPlan, serving: PlanServing): Promise<void> {
  const { redis, place, plan, onError } = serving;
  const claim = { id: wanted.id, run: randomUUID() };
  if (!(await throughOutage(() => beginPlan(redis, place, claim), serving))) return;
  const release = holdPlan(redis, place, { ...claim, onError });
  try {
    const record = await plan?.(wanted);
    if (record === undefined) return;
    await throughOutage(() => storePlan(redis, place, wanted, record), serving);
  } finally {
    release();
  }
}

/** Repeats a call during a failover of Redis. Otherwise the plan is lost, although its worker lives. */
async function throughOutage<T>(
  call: () => Promise<T>,
  { stopping }: Pick<PlanServing, "stopping">,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call();
    } catch (error) {
      if (tries === MOST_TRIES) throw error;
      const isStopping = await Promise.race([sleepMs(AGAIN_MS).then(() => false), stopping]);
      if (isStopping === null) throw error;
    }
  }
}

/**
 * Asks the workers of a cluster for an object. Returns the answer of one of them, or undefined if none has answered within 5 s.
 * @throws KonvergeError `redis_unavailable`
 */
export async function askForObject(
  redis: RedisClient,
  {
    prefix,
    cluster,
    wanted,
  }: { readonly prefix: string; readonly cluster: string; readonly wanted: ObjectRead },
  { waitMs = WAIT_MS, signal }: { readonly waitMs?: number; readonly signal?: AbortSignal } = {},
): Promise<string | undefined> {
  const stored: StoredRead = { id: randomUUID(), ...wanted };
  const text = JSON.stringify(stored);
  const key = requestsKey(prefix, cluster, wanted.controller);
  await withRedis(redis, () =>
    redis
      .multi()
      .rpush(key, text)
      .ltrim(key, -MOST_WAITING, -1)
      .pexpire(key, 2 * waitMs)
      .exec(),
  );
  const untilMs = performance.now() + waitMs;
  for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(LONGEST_LOOK_MS, 2 * pauseMs)) {
    await sleepMs(pauseMs);
    const answer = await withRedis(redis, () =>
      redis.getdel(answerKey(prefix, cluster, stored.id)),
    );
    if (answer !== null) return answer;
    if (performance.now() < untilMs && signal?.aborted !== true) continue;
    await withRedis(redis, () => redis.lrem(key, 0, text));
    return undefined;
  }
}

function requestsKey(prefix: string, cluster: string, controller: string): string {
  return `${clusterRoot(prefix, cluster)}/reads/${encodeURIComponent(controller)}`;
}

function answerKey(prefix: string, cluster: string, id: string): string {
  return `${clusterRoot(prefix, cluster)}/read-answers/${id}`;
}
