import { ProblemError, type Client, type ControllerObject } from "@konverge/client";
import type { ObjectPlan } from "@konverge/contracts";
import { KonvergeError, parseKey } from "@konverge/core";
import { FleetPlan, type FleetQuery } from "./fleet-plan.ts";
import type { ProgressFile } from "./progress-file.ts";

export interface FleetOptions {
  /** Keeps the plans of earlier calls; their objects are not planned again. */
  readonly progress: ProgressFile | undefined;
  /** Longest time of one plan, in ms. */
  readonly timeoutMs: number;
  /** Called after each plan. */
  readonly onPlanned: (plan: FleetPlan) => void;
}

/** Plans at once. A worker runs two at a time; further ones wait. */
const CONCURRENCY = 8;
const PAGE = 1_000;
/** Plans of one object before the command gives up, because workers stop or Redis loses them. */
const MOST_PLANS = 5;

/** Plans all objects of a cluster, in order of their lists, with calls after those of all other work. */
export async function planFleet(
  client: Client,
  query: FleetQuery,
  { progress, timeoutMs, onPlanned }: FleetOptions,
): Promise<FleetPlan> {
  const fleet = new FleetPlan();
  const running = new Set<Promise<void>>();
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  const planAndAdd = async (key: string) => {
    const entry = await planOne(client, key, timeoutMs);
    fleet.add(entry);
    progress?.append(entry);
    onPlanned(fleet);
  };
  for await (const { key } of client.objects.list({ ...query, limit: PAGE })) {
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

async function planOne(client: Client, key: string, timeoutMs: number) {
  const { cluster, controller, namespace, name } = parseKey(key);
  const object: ControllerObject = { cluster, controller, namespace, name };
  for (let tries = 1; ; tries += 1) {
    const options = { class: "background", timeoutMs } as const;
    const { plan, state, message } = await client.objects.plan(object, options).catch(lostPlan);
    if (plan !== undefined) return FleetPlan.entryOf(key, plan);
    if (state === "lost" && tries < MOST_PLANS) continue;
    throw new KonvergeError("deferred", `no plan of ${key}: ${message}; repeat the command`);
  }
}

/** Redis has lost the request of a plan that is unknown while its client waits. */
function lostPlan(error: unknown): Pick<ObjectPlan, "plan" | "state" | "message"> {
  if (!(error instanceof ProblemError) || error.code !== "not_found") throw error;
  return { state: "lost", message: "Redis has lost the request" };
}
