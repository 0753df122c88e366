import type { Activity, ActivityMinute, GuardList } from "@konverge/contracts";
import { defined, endedWell, OUTCOME_KINDS } from "@konverge/core";
import {
  durationQuantile,
  type AttemptRow,
  type GaugeMinute,
  type HistoryReader,
  type Rollup,
  type ScanOptions,
} from "@konverge/queue";
import { covers, type Caller } from "../access/caller.ts";
import { placeOf } from "../queues/place-of.ts";
import { convergenceOf, sloOf } from "./convergence-view.ts";
import { loopsOf, objectFilter, readVisibleEpisodes } from "./history-view.ts";
import { objectOf } from "./object-place.ts";
import type { QueueAccess } from "../queues/queue-access.ts";

const MINUTE_MS = 60_000;
const MINUTES_PER_HOUR = 60;
/** Newest attempts that errors and objects are counted in. */
const SAMPLED = 500;
const MOST_LISTED = 8;
const MOST_DEAD = 100;

/** Outcomes that count as failures. */
export const FAILED_OUTCOMES: readonly string[] = ["retry", "rejected", "terminal", "lost"];
const GOOD_OUTCOMES: readonly string[] = OUTCOME_KINDS.filter(endedWell);

export interface MinutesInput {
  readonly minutes: number;
  /** The counters of the controllers that the minutes add up. */
  readonly rollups: readonly Rollup[];
  readonly gauges: readonly GaugeMinute[];
  /** The controllers whose queues count. */
  readonly controllers: readonly string[];
  /** One controller: adds percentiles, pauses and versions. */
  readonly isSingle: boolean;
}

/** Joins counters and measured values per minute, oldest first. */
export function activityMinutes(input: MinutesInput): ActivityMinute[] {
  const { minutes, rollups, gauges, controllers, isSingle } = input;
  const last = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const counters = Map.groupBy(rollups, ({ atMs }) => atMs);
  const measured = new Map(gauges.map((gauge) => [gauge.atMs, gauge]));
  return Array.from({ length: minutes }, (_, index) => {
    const atMs = last - (minutes - 1 - index) * MINUTE_MS;
    const counts = (counters.get(atMs) ?? []).map((rollup) => rollup.counts);
    const gauge = measured.get(atMs);
    return {
      at: new Date(atMs).toISOString(),
      ...outcomesOf(counts),
      ...(isSingle ? percentilesOf(counts) : {}),
      ...(gauge === undefined ? {} : gaugesOf(gauge, controllers, isSingle)),
    };
  });
}

/** Adds up the outcomes of counters. */
export function outcomesOf(
  counters: readonly Rollup["counts"][],
): Pick<ActivityMinute, "ok" | "failed" | "conflict"> {
  const sum = (outcomes: readonly string[]) =>
    counters.reduce(
      (all, counts) =>
        outcomes.reduce((some, outcome) => some + (counts[`outcome.${outcome}`] ?? 0), all),
      0,
    );
  return { ok: sum(GOOD_OUTCOMES), failed: sum(FAILED_OUTCOMES), conflict: sum(["conflict"]) };
}

function percentilesOf(counters: readonly Rollup["counts"][]) {
  const [p50Ms, p95Ms, p99Ms] = [0.5, 0.95, 0.99].map((share) => durationQuantile(counters, share));
  return defined({ p50Ms, p95Ms, p99Ms });
}

function gaugesOf(
  { controllers: found, ...gauge }: GaugeMinute,
  controllers: readonly string[],
  isSingle: boolean,
) {
  const rows = controllers.flatMap((name) => found.get(name) ?? []);
  return {
    waiting: rows.reduce((sum, { waiting }) => sum + waiting, 0),
    oldestMs: rows.reduce((most, { oldestMs }) => Math.max(most, oldestMs), 0),
    ...callsOf(gauge),
    ...(isSingle
      ? {
          isPaused: rows.some(({ isPaused }) => isPaused),
          ...defined({ version: rows[0]?.version }),
        }
      : {}),
  };
}

function callsOf({
  calls,
  deferred,
  waitingCalls,
  allowed,
  limit,
  breaker,
}: Omit<GaugeMinute, "controllers">) {
  return { calls, deferred, waitingCalls, ...defined({ allowed, limit, breaker }) };
}

/** Returns the calls of a cluster per minute, oldest first. */
export function callMinutes(
  gauges: readonly GaugeMinute[],
  minutes: number,
): GuardList["items"][number]["activity"] {
  const last = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const measured = new Map(gauges.map((gauge) => [gauge.atMs, gauge]));
  return Array.from({ length: minutes }, (_, index) => {
    const atMs = last - (minutes - 1 - index) * MINUTE_MS;
    const gauge = measured.get(atMs);
    return { at: new Date(atMs).toISOString(), ...(gauge === undefined ? {} : callsOf(gauge)) };
  });
}

export interface ReadActivityInput {
  readonly access: QueueAccess;
  readonly caller: Caller;
  readonly cluster: string;
  readonly controller: string | undefined;
  readonly minutes: number;
  readonly scan: <T>(run: (options: ScanOptions) => Promise<T>) => Promise<T>;
}

/** Reads the activity of a controller, or of all controllers in the scope of the caller. */
export async function readActivity(input: ReadActivityInput): Promise<Activity> {
  const { access, caller, cluster, controller, minutes, scan } = input;
  const history = await access.history(cluster);
  const { controllers: scoped } = caller.scope;
  const known = await access.controllers(cluster);
  const names =
    controller === undefined
      ? known.map(({ name }) => name).filter((name) => scoped?.includes(name) ?? true)
      : [controller];
  const [rollups, gauges] = await Promise.all([
    controller === undefined
      ? scan((options) => outcomesOfAll(history, names, { minutes, options }))
      : history.rollups(controller, minutes),
    access.gauges(cluster).read(minutes),
  ]);
  const items = activityMinutes({
    minutes,
    rollups,
    gauges,
    controllers: names,
    isSingle: controller !== undefined,
  });
  if (controller === undefined) {
    const none = { errors: [], objects: [], managers: [] };
    return { items, sampled: 0, ...none, more: { errors: 0, objects: 0, managers: 0 } };
  }
  const { queue } = await access.find(cluster, controller);
  const [{ items: rows }, dead, pauses, { managers, wasted }] = await Promise.all([
    scan((options) => history.search({ controller, limit: SAMPLED }, options)),
    queue.control.listKeys({
      phase: "deadLettered",
      limit: MOST_DEAD,
      ...defined({ namespaces: caller.scope.namespaces }),
    }),
    queue.control.listPauses(),
    readContentionOf(history, { access, caller, cluster, controller, minutes }),
  ]);
  const visible = rows.filter(({ key }) => covers(caller.scope, placeOf(key)));
  const objective = known.find(({ name }) => name === controller)?.slo;
  const slo = objective && sloOf(rollups, objective, managers);
  const lists = { errors: errorsOf(visible), objects: objectsOf(visible, wasted), managers };
  const rest = ({ length }: readonly unknown[]) => Math.max(0, length - MOST_LISTED);
  return {
    items,
    deadLetters: dead.items.length,
    isPaused: pauses.some(({ scope }) => scope.kind === "controller"),
    sampled: visible.length,
    errors: lists.errors.slice(0, MOST_LISTED),
    objects: lists.objects.slice(0, MOST_LISTED),
    managers: lists.managers.slice(0, MOST_LISTED),
    ...defined({ convergence: convergenceOf(rollups, managers), slo }),
    more: {
      errors: rest(lists.errors),
      objects: rest(lists.objects),
      managers: rest(lists.managers),
    },
  };
}

/**
 * Adds up the outcomes of controllers per minute, one controller after another: the counters of a day of many controllers need
 * much memory. The caller pays for each controller.
 */
async function outcomesOfAll(
  history: HistoryReader,
  controllers: readonly string[],
  { minutes, options }: { readonly minutes: number; readonly options: ScanOptions },
): Promise<Rollup[]> {
  const { turn = (read) => read(), onScanned } = options;
  const sums = new Map<number, Record<string, number>>();
  for (const controller of controllers) {
    const rollups = await turn(() => history.rollups(controller, minutes));
    onScanned?.(minutes);
    for (const { atMs, counts } of rollups) {
      const sum = sums.get(atMs) ?? {};
      sums.set(atMs, sum);
      for (const [name, count] of Object.entries(counts)) {
        if (name.startsWith("outcome.")) sum[name] = (sum[name] ?? 0) + count;
      }
    }
  }
  return [...sums].map(([atMs, counts]) => ({ atMs, counts }));
}

type ContentionOf = Pick<ReadActivityInput, "access" | "caller" | "cluster" | "minutes"> & {
  readonly controller: string;
};

/** Reads the competing managers of a controller, and its wasted writes by key. */
async function readContentionOf(
  history: HistoryReader,
  { access, caller, cluster, controller, minutes }: ContentionOf,
): Promise<Pick<Activity, "managers"> & { readonly wasted: ReadonlyMap<string, number> }> {
  const hours = Math.ceil(minutes / MINUTES_PER_HOUR);
  // The caller may see this controller.
  const own = { ...caller, scope: { ...caller.scope, controllers: [controller] } };
  const [isSeen, known, competing, { ownershipFlips, loops }] = await Promise.all([
    objectFilter(access, own, cluster),
    access.controllers(cluster),
    history.competingManagers(hours, caller.scope.namespaces),
    history.contentionReport(hours),
  ]);
  const states = loopsOf(loops, own);
  const { episodes } = await readVisibleEpisodes(history, {
    caller: own,
    loops: states,
    isSeen,
    known,
  });
  const found = new Map<string, { attempts: number; flips: number }>();
  const of = (manager: string) => {
    const counts = found.get(manager) ?? { attempts: 0, flips: 0 };
    found.set(manager, counts);
    return counts;
  };
  for (const each of competing) {
    if (each.controller === controller) of(each.manager).attempts += each.attempts;
  }
  for (const { object, manager, count } of ownershipFlips) {
    if (isSeen(objectOf(object))) of(manager).flips += count;
  }
  return {
    managers: [...found]
      .map(([manager, counts]) => ({ manager, ...counts }))
      .toSorted((one, other) => other.attempts + other.flips - one.attempts - one.flips),
    wasted: new Map(
      episodes.flatMap(({ key, wastedWrites }) =>
        key === undefined ? [] : [[key, wastedWrites] as const],
      ),
    ),
  };
}

function errorsOf(rows: readonly AttemptRow[]): Activity["errors"] {
  const failed = rows.filter(({ outcome }) => FAILED_OUTCOMES.includes(outcome));
  return [...Map.groupBy(failed, ({ errorCode, outcome }) => errorCode || outcome)]
    .map(([code, { length }]) => ({ code, attempts: length }))
    .toSorted((one, other) => other.attempts - one.attempts);
}

function objectsOf(
  rows: readonly AttemptRow[],
  wasted: ReadonlyMap<string, number>,
): Activity["objects"] {
  const attempts = Map.groupBy(rows, ({ key }) => key);
  const costOf = ({ failed, conflicts, wastedWrites }: Activity["objects"][number]) =>
    failed + conflicts + wastedWrites;
  return [...new Set([...attempts.keys(), ...wasted.keys()])]
    .map((key) => {
      const own = attempts.get(key) ?? [];
      return {
        key,
        failed: own.filter(({ outcome }) => FAILED_OUTCOMES.includes(outcome)).length,
        conflicts: own.reduce((sum, { conflicts }) => sum + conflicts, 0),
        wastedWrites: wasted.get(key) ?? 0,
      };
    })
    .filter((object) => costOf(object) > 0)
    .toSorted((one, other) => costOf(other) - costOf(one));
}
