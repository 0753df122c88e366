import { clusterRoot, runScript, withRedis, type RedisClient } from "@konverge/redis";
import { beginPlanScript } from "./scripts/begin-plan.ts";
import { requeuePlanScript } from "./scripts/requeue-plan.ts";
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
/** Requests of a controller and class in the list for workers. Beyond that, the oldest are added again when there is space. */
const MOST_WAITING = 50;
/** Longest time that a request waits for a worker, in ms. */
const WAITING_MS = 120_000;
/** Time between two checks that a waiting request is still in its list, in ms. */
const CHECK_MS = 2_000;
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
  const request = JSON.stringify(wanted);
  await withRedis(redis, () =>
    redis
      .multi()
      .set(planKey(place, wanted.id), WAITING, "PX", WAITING_MS)
      .set(leaseKey(place, wanted.id), "", "PX", CHECK_MS)
      .set(wantedKey(place, wanted.id), request, "PX", WAITING_MS)
      .rpush(list, request)
      .ltrim(list, -MOST_WAITING, -1)
      .pexpire(list, WAITING_MS)
      .exec(),
  );
}

/** A plan that a worker runs. */
export interface PlanClaim {
  readonly id: string;
  /** Identifies this run of the plan. */
  readonly run: string;
}

/**
 * Marks a waiting plan as running. Returns false if another run has begun it, or if its request has expired. A repeated call
 * returns the same.
 */
export async function beginPlan(
  redis: RedisClient,
  place: PlanPlace,
  { id, run }: PlanClaim,
): Promise<boolean> {
  const keys = { plan: planKey(place, id), lease: leaseKey(place, id) };
  const args = { run, leaseMs: LEASE_MS, runningMs: RUNNING_MS };
  return await withRedis(redis, () => runScript(redis, beginPlanScript, { keys, args }));
}

/** Renews the lease of a running plan until the returned function is called. */
export function holdPlan(
  redis: RedisClient,
  place: PlanPlace,
  { id, run, onError }: PlanClaim & { readonly onError: (error: Error) => void },
): () => void {
  const renew = () => redis.set(leaseKey(place, id), run, "PX", LEASE_MS);
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

/**
 * Returns the state of a plan; undefined if it is unknown or has expired. If a worker took the request from its list and did
 * not begin, for example because its connection broke, the request is added to the list again.
 */
export async function readPlan(
  redis: RedisClient,
  place: PlanPlace,
  id: string,
): Promise<PlanState | undefined> {
  const [found, lease, request] = await withRedis(redis, () =>
    redis.mget(planKey(place, id), leaseKey(place, id), wantedKey(place, id)),
  );
  if (found === null || found === undefined) return undefined;
  if (found === WAITING) {
    // Without a request, an earlier version made it.
    if (lease === null && typeof request === "string") await requeuePlan(redis, place, request);
    return { state: found };
  }
  if (found !== RUNNING) return { state: "ended", record: found };
  return { state: lease === null ? "lost" : found };
}

async function requeuePlan(redis: RedisClient, place: PlanPlace, request: string): Promise<void> {
  const { id, controller, class: planClass } = JSON.parse(request) as WantedPlan;
  const keys = {
    plan: planKey(place, id),
    lease: leaseKey(place, id),
    list: planRequestsKey(place, controller, planClass),
  };
  const args = { request, checkMs: CHECK_MS, keptMs: WAITING_MS, mostWaiting: MOST_WAITING };
  await withRedis(redis, () => runScript(redis, requeuePlanScript, { keys, args }));
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

/** The lease of the worker that runs the plan. While it waits: exists until the next check of the list. */
function leaseKey({ prefix, cluster }: PlanPlace, id: string): string {
  return `${clusterRoot(prefix, cluster)}/plan-leases/${id}`;
}

/** The request of a plan. */
function wantedKey({ prefix, cluster }: PlanPlace, id: string): string {
  return `${clusterRoot(prefix, cluster)}/plans-wanted/${id}`;
}

function plansOfKey({ prefix, cluster }: PlanPlace, key: string): string {
  return `${clusterRoot(prefix, cluster)}/plans-of/${key}`;
}
