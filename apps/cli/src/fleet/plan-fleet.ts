import { ProblemError, type Client, type ControllerObject } from "@konverge/client";
import type { ObjectPlan } from "@konverge/contracts";
import { defined, KonvergeError, parseKey, sleepMs } from "@konverge/core";
import type { PlanRecord } from "@konverge/records";
import { areComparable, comparePlans } from "./compare-plans.ts";
import { FleetPlan, type FleetEntry, type FleetQuery } from "./fleet-plan.ts";
import type { NewCode } from "./open-new-code.ts";
import type { ProgressFile } from "./progress-file.ts";

export interface FleetOptions {
  /** Keeps the plans of earlier calls; their objects are not planned again. */
  readonly progress: ProgressFile | undefined;
  /** Longest time of one plan in a worker, in ms. */
  readonly timeoutMs: number;
  /** Called after each plan. */
  readonly onPlanned: (plan: FleetPlan) => void;
  /** Its plans are compared with those of the workers. Default: the plans of the workers alone. */
  readonly newCode?: NewCode | undefined;
}

/** Plans at once. A worker runs two at a time; further ones wait. */
const CONCURRENCY = 8;
const PAGE = 1_000;
/** Plans of one object before the command gives up, because workers stop or Redis loses them. */
const MOST_PLANS = 5;
/** Time between two tries of a plan that the guard defers, in ms. */
const SHORTEST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
/** Longest time without Redis or the HTTP API that does not end the command, in ms: a failover takes up to 30 s. */
const OUTAGE_MS = 120_000;
const AGAIN_MS = 1_000;
/**
 * Errors of an outage, or of a limit of the HTTP API. A key in flight belongs to a call whose end could not be stored.
 */
const PASSING: ReadonlySet<string> = new Set([
  "api_unreachable",
  "idempotency_in_flight",
  "rate_limited",
  "redis_unavailable",
]);
/** Comparisons of an object that another client changes between its two plans. */
const MOST_TRIES = 3;

/** Plans all objects of a cluster, in order of their lists, with calls after those of all other work. */
export async function planFleet(
  client: Client,
  query: FleetQuery,
  { progress, timeoutMs, onPlanned, newCode }: FleetOptions,
): Promise<FleetPlan> {
  const fleet = new FleetPlan({ isComparison: newCode !== undefined });
  const running = new Set<Promise<void>>();
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  const { keys, plan } = await planningOf(client, query, { newCode, timeoutMs });
  const planAndAdd = async (key: string) => {
    const entry = await plan(key);
    fleet.add(entry);
    progress?.append(entry);
    onPlanned(fleet);
  };
  for await (const key of keys) {
    const { controller } = parseKey(key);
    if (newCode?.controllers.includes(controller) === false) {
      fleet.addRemoved(controller);
      continue;
    }
    const known = progress?.find(key);
    if (known !== undefined) {
      fleet.add(known);
      continue;
    }
    const planning = planAndAdd(key)
      .catch((error: unknown) => failed.reject(error))
      .finally(() => running.delete(planning));
    running.add(planning);
    if (running.size >= CONCURRENCY) await Promise.race([...running, failed.promise]);
  }
  await Promise.race([Promise.all(running), failed.promise]);
  return fleet;
}

interface Planning {
  readonly keys: AsyncIterable<string>;
  readonly plan: (key: string) => Promise<FleetEntry>;
}

async function planningOf(
  client: Client,
  query: FleetQuery,
  { newCode, timeoutMs }: Pick<FleetOptions, "newCode" | "timeoutMs">,
): Promise<Planning> {
  const planRunning = (key: string) =>
    onceAdmitted(() => planInWorker(client, key, timeoutMs), timeoutMs);
  const planNew = (key: string, code: NewCode) => onceAdmitted(() => code.plan(key), timeoutMs);
  if (newCode === undefined) {
    return {
      keys: keysOf(client, query),
      plan: async (key) => FleetPlan.entryOf(key, await planRunning(key)),
    };
  }
  const { cluster } = query;
  const { controllers } = await client.overview({ cluster });
  const workers = new Map(controllers.map((each) => [each.name, each.workers]));
  return {
    keys: keysOfBoth(client, query, { newCode, workers }),
    plan: (key) =>
      workers.has(parseKey(key).controller)
        ? compare(key, { planNew: () => planNew(key, newCode), planRunning })
        : planNew(key, newCode).then((next) => comparePlans(key, undefined, next)),
  };
}

interface Compared {
  readonly planNew: () => Promise<PlanRecord>;
  readonly planRunning: (key: string) => Promise<PlanRecord>;
}

/** Plans with the running code, and at once with the new code, until both have read the same version of the object. */
async function compare(key: string, { planNew, planRunning }: Compared): Promise<FleetEntry> {
  for (let tries = 1; ; tries += 1) {
    const before = await planRunning(key);
    const after = await planNew();
    if (areComparable(before, after) || tries === MOST_TRIES) {
      return comparePlans(key, before, after);
    }
  }
}

/** Repeats a plan whose calls the guard has deferred, because other work needs the rate. */
async function onceAdmitted(
  plan: () => Promise<PlanRecord>,
  timeoutMs: number,
): Promise<PlanRecord> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    const record = await plan();
    const { outcome, afterMs = SHORTEST_PAUSE_MS } = record;
    if (outcome !== "deferred" || performance.now() >= endMs) return record;
    await sleepMs(Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, afterMs)));
  }
}

async function* keysOf(client: Client, { cluster, controller, namespace }: FleetQuery) {
  const query = { cluster, ...defined({ controller, namespace }) };
  let cursor: string | undefined;
  do {
    const read = () =>
      client.objects.list({ ...query, limit: PAGE, ...defined({ cursor }) }).page();
    // The first page reports a missing Redis soon.
    const { items, next } = await (cursor === undefined ? read() : throughPassing(read));
    for (const { key } of items) yield key;
    cursor = next;
  } while (cursor !== undefined);
}

/** The keys of the running code, then those of controllers that only the new code has. */
async function* keysOfBoth(
  client: Client,
  query: FleetQuery,
  {
    newCode,
    workers,
  }: { readonly newCode: NewCode; readonly workers: ReadonlyMap<string, number> },
): AsyncGenerator<string> {
  const { controllers } = newCode;
  for await (const key of keysOf(client, query)) {
    const { controller } = parseKey(key);
    // A controller that neither runs nor is in the new code has left its keys.
    if (controllers.includes(controller) || workers.get(controller) !== 0) yield key;
  }
  for (const controller of controllers) {
    const isSelected = query.controller === undefined || query.controller === controller;
    if (workers.has(controller) || !isSelected) continue;
    const { namespace } = query;
    yield* newCode.keys(controller, defined({ namespace }));
  }
}

async function planInWorker(client: Client, key: string, timeoutMs: number): Promise<PlanRecord> {
  const { cluster, controller, namespace, name } = parseKey(key);
  const object: ControllerObject = { cluster, controller, namespace, name };
  for (let tries = 1; ; tries += 1) {
    const options = { class: "background", timeoutMs } as const;
    const ask = () => client.objects.plan(object, options);
    const { plan, state, message } = await throughPassing(ask).catch(lostPlan);
    if (plan !== undefined) return plan;
    if (state === "lost" && tries < MOST_PLANS) continue;
    throw new KonvergeError("deferred", `no plan of ${key}: ${message}; repeat the command`);
  }
}

/** Repeats a call while an error passes. A plan has no effect, so each try is a new request. */
async function throughPassing<T>(call: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + OUTAGE_MS;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const isPassing = error instanceof ProblemError && PASSING.has(error.code);
      if (!isPassing || performance.now() >= endMs) throw error;
      await sleepMs(Math.max(SHORTEST_PAUSE_MS, error.retryAfterMs ?? AGAIN_MS));
    }
  }
}

/** Redis has lost the request of a plan that is unknown while its client waits. */
function lostPlan(error: unknown): Pick<ObjectPlan, "plan" | "state" | "message"> {
  if (!(error instanceof ProblemError) || error.code !== "not_found") throw error;
  return { state: "lost", message: "Redis has lost the request" };
}
