import { clusterRoot, withRedis, type RedisClient } from "@konverge/redis";

/** A plan that a user of the API requests. */
export interface WantedPlan {
  readonly id: string;
  /** Of the object, in its canonical text form. */
  readonly key: string;
  readonly controller: string;
  /** The name of the caller. */
  readonly by: string;
}

/** The place of a cluster's plans in Redis. */
export interface PlanPlace {
  readonly prefix: string;
  readonly cluster: string;
}

/** Retention of a plan, in ms. */
const KEPT_MS = 7 * 86_400_000;
/** Plans that are kept of one object; the oldest are deleted first. */
const KEPT_OF_OBJECT = 20;
/** Requests of a controller that wait for a worker; older ones are dropped. */
const MOST_WAITING = 50;
/** Longest time that a request waits for a worker, in ms. */
const WAITING_MS = 120_000;
/** The mark of a running plan outlives its handler, whose timeout ends it. */
const RUNNING_MS = 15 * 60_000;
const WAITING = "waiting";
const RUNNING = "running";

/** The state of a plan. `waiting`: no worker has begun it. */
export type PlanState =
  | { readonly state: "waiting" | "running" }
  | { readonly state: "ended"; readonly record: string };

/** Requests a plan from the workers of a controller. @throws KonvergeError `redis_unavailable` */
export async function requestPlan(
  redis: RedisClient,
  place: PlanPlace,
  wanted: WantedPlan,
): Promise<void> {
  const list = planRequestsKey(place, wanted.controller);
  await withRedis(redis, () =>
    redis
      .multi()
      .set(planKey(place, wanted.id), WAITING, "PX", WAITING_MS)
      .rpush(list, JSON.stringify(wanted))
      .ltrim(list, -MOST_WAITING, -1)
      .pexpire(list, WAITING_MS)
      .exec(),
  );
}

/** Marks a plan as running. Returns false if its request has expired. */
export async function beginPlan(
  redis: RedisClient,
  place: PlanPlace,
  id: string,
): Promise<boolean> {
  const key = planKey(place, id);
  return (await withRedis(redis, () => redis.set(key, RUNNING, "PX", RUNNING_MS, "XX"))) !== null;
}

/** Stores the record of a plan, and deletes the oldest ones of its object. */
export async function storePlan(
  redis: RedisClient,
  place: PlanPlace,
  { id, key }: Pick<WantedPlan, "id" | "key">,
  record: string,
): Promise<void> {
  const index = plansOfKey(place, key);
  await withRedis(redis, () =>
    redis
      .multi()
      .set(planKey(place, id), record, "PX", KEPT_MS)
      .lpush(index, id)
      .pexpire(index, KEPT_MS)
      .exec(),
  );
  const old = await withRedis(redis, () => redis.lrange(index, KEPT_OF_OBJECT, -1));
  if (old.length === 0) return;
  await withRedis(redis, () =>
    redis
      .multi()
      .ltrim(index, 0, KEPT_OF_OBJECT - 1)
      .del(...old.map((each) => planKey(place, each)))
      .exec(),
  );
}

/** Returns the state of a plan; undefined if it is unknown or has expired. */
export async function readPlan(
  redis: RedisClient,
  place: PlanPlace,
  id: string,
): Promise<PlanState | undefined> {
  const found = await withRedis(redis, () => redis.get(planKey(place, id)));
  if (found === null) return undefined;
  return found === WAITING || found === RUNNING
    ? { state: found }
    : { state: "ended", record: found };
}

/** Returns the records of an object's plans, newest first. */
export async function readPlansOf(
  redis: RedisClient,
  place: PlanPlace,
  key: string,
): Promise<string[]> {
  const ids = await withRedis(redis, () =>
    redis.lrange(plansOfKey(place, key), 0, KEPT_OF_OBJECT - 1),
  );
  if (ids.length === 0) return [];
  const found = await withRedis(redis, () => redis.mget(ids.map((id) => planKey(place, id))));
  return found.filter((record) => record !== null);
}

export function planRequestsKey({ prefix, cluster }: PlanPlace, controller: string): string {
  return `${clusterRoot(prefix, cluster)}/plan-requests/${encodeURIComponent(controller)}`;
}

function planKey({ prefix, cluster }: PlanPlace, id: string): string {
  return `${clusterRoot(prefix, cluster)}/plans/${id}`;
}

function plansOfKey({ prefix, cluster }: PlanPlace, key: string): string {
  return `${clusterRoot(prefix, cluster)}/plans-of/${key}`;
}
