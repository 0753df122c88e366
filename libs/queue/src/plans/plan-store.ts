import { clusterRoot, runScript, withRedis, type RedisClient } from "@konverge/redis";
import { storePlanScript } from "./scripts/store-plan.ts";

export type PlanClass = "interactive" | "background";

/** A plan that a user of the API requests. */
export interface WantedPlan {
  readonly id: string;
  /** The key of the object, in its canonical text form. */
  readonly key: string;
  readonly controller: string;
  /** The name of the caller. */
  readonly by: string;
  /**
   * Default `interactive`. Plans of class `background` begin after the others; their records are kept for a short time, and
   * not listed.
   */
  readonly class?: PlanClass;
}

/** The place of a cluster's plans in Redis. */
export interface PlanPlace {
  readonly prefix: string;
  readonly cluster: string;
}

/** Retention of a plan, in ms. */
const KEPT_MS = 7 * 86_400_000;
/** Retention of a plan of class `background`, in ms. */
const PASSING_MS = 10 * 60_000;
/** Requests of a controller and class that wait for a worker; older ones are dropped. */
const MOST_WAITING = 50;
/** Longest time that a request waits for a worker, in ms. */
const WAITING_MS = 120_000;
/** The mark of a running plan, which outlives its lease. */
const RUNNING_MS = 7 * 86_400_000;
/** A worker that has not renewed the lease of its plan for this time has died, in ms. */
const LEASE_MS = 30_000;
const WAITING = "waiting";
const RUNNING = "running";

/** The state of a plan. `waiting`: no worker has begun it. `lost`: its worker has died. */
export type PlanState =
  | { readonly state: "waiting" | "running" | "lost" }
  | { readonly state: "ended"; readonly record: string };

/** Requests a plan from the workers of a controller. @throws KonvergeError `redis_unavailable` */
export async function requestPlan(
  redis: RedisClient,
  place: PlanPlace,
  wanted: WantedPlan,
): Promise<void> {
  const list = planRequestsKey(place, wanted.controller, wanted.class);
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
  const [, begun] = await withRedis(redis, () =>
    Promise.all([
      redis.set(leaseKey(place, id), "", "PX", LEASE_MS),
      redis.set(planKey(place, id), RUNNING, "PX", RUNNING_MS, "XX"),
    ]),
  );
  return begun !== null;
}

/** Renews the lease of a running plan until the returned function is called. */
export function holdPlan(
  redis: RedisClient,
  place: PlanPlace,
  { id, onError }: { readonly id: string; readonly onError: (error: Error) => void },
): () => void {
  const renew = () => redis.set(leaseKey(place, id), "", "PX", LEASE_MS);
  const timer = setInterval(() => void withRedis(redis, renew).catch(onError), LEASE_MS / 3);
  return () => clearInterval(timer);
}

/** Stores the record of a plan, and deletes the oldest ones beyond the limits of its object and its cluster. */
export async function storePlan(
  redis: RedisClient,
  place: PlanPlace,
  { id, key, class: planClass }: Pick<WantedPlan, "id" | "key" | "class">,
  record: string,
): Promise<void> {
  // A plan of the fleet must not displace the plans of users.
  if (planClass === "background") {
    await withRedis(redis, () => redis.set(planKey(place, id), record, "PX", PASSING_MS));
    return;
  }
  const root = clusterRoot(place.prefix, place.cluster);
  const keys = {
    plans: plansOfKey(place, key),
    ages: `${root}/plan-ages`,
    sizes: `${root}/plan-sizes`,
  };
  const args = { records: `${root}/plans/`, id, record, keptMs: KEPT_MS };
  await withRedis(redis, () => runScript(redis, storePlanScript, { keys, args }));
}

/** Returns the state of a plan; undefined if it is unknown or has expired. */
export async function readPlan(
  redis: RedisClient,
  place: PlanPlace,
  id: string,
): Promise<PlanState | undefined> {
  const [found, lease] = await withRedis(redis, () =>
    redis.mget(planKey(place, id), leaseKey(place, id)),
  );
  if (found === null || found === undefined) return undefined;
  if (found === WAITING) return { state: found };
  if (found !== RUNNING) return { state: "ended", record: found };
  return { state: lease === null ? "lost" : found };
}

/** Returns the records of an object's plans, newest first. */
export async function readPlansOf(
  redis: RedisClient,
  place: PlanPlace,
  key: string,
): Promise<string[]> {
  const ids = await withRedis(redis, () => redis.lrange(plansOfKey(place, key), 0, -1));
  if (ids.length === 0) return [];
  const found = await withRedis(redis, () => redis.mget(ids.map((id) => planKey(place, id))));
  return found.filter((record) => record !== null);
}

/** The list of requests that wait for a worker of the controller. */
export function planRequestsKey(
  { prefix, cluster }: PlanPlace,
  controller: string,
  planClass: PlanClass = "interactive",
): string {
  const list = planClass === "background" ? "fleet-plan-requests" : "plan-requests";
  return `${clusterRoot(prefix, cluster)}/${list}/${encodeURIComponent(controller)}`;
}

/** A list of one worker, which ends its wait for requests. */
export function planWakesKey({ prefix, cluster }: PlanPlace, id: string): string {
  return `${clusterRoot(prefix, cluster)}/plan-wakes/${id}`;
}

function planKey({ prefix, cluster }: PlanPlace, id: string): string {
  return `${clusterRoot(prefix, cluster)}/plans/${id}`;
}

function leaseKey({ prefix, cluster }: PlanPlace, id: string): string {
  return `${clusterRoot(prefix, cluster)}/plan-leases/${id}`;
}

function plansOfKey({ prefix, cluster }: PlanPlace, key: string): string {
  return `${clusterRoot(prefix, cluster)}/plans-of/${key}`;
}
