import { type Overview, type OverviewController } from "@konverge/contracts";
import { defined, parseKey } from "@konverge/core";
import type { GuardControl } from "@konverge/guard";
import {
  durationQuantile,
  type AnnouncedController,
  type AnnouncedWorker,
  type AttemptRow,
  type HistoryReader,
  type NotificationRecord,
  type Rollup,
} from "@konverge/queue";
import { covers, isUnrestricted, touches, type Caller } from "../access/caller.ts";
import { errorsOf } from "./controller-errors.ts";
import type { ControllerTrouble } from "./find-controller-problems.ts";
import { activityMinutes, outcomesOf } from "./read-activity.ts";
import { findProblems, type Findings } from "./find-problems.ts";
import { loopsOf, objectFilter, readVisibleEpisodes } from "./history-view.ts";
import { sourceViews } from "../inbound/source-list.ts";
import { pauseView } from "../queues/key-item.ts";
import { placeOf } from "../queues/place-of.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { visiblePauses } from "../queues/queue-view.ts";
import { readWorkflows } from "./read-workflows.ts";

const MINUTES = 60;
const MINUTE_MS = 60_000;
/** Attempts behind the causes of failures: one round trip to Redis. */
const SAMPLED = 1_000;
const MOST_DEAD = 100;
/** Waiting jobs that are read from each end of the queue. */
const LOOKED_AT = 20;
const WAITING = ["wait", "prioritized"] as const;
/** The newest notifications that are read; each has about 3 KiB. */
const MESSAGES = 50;

export interface OverviewInput {
  readonly access: QueueAccess;
  readonly guards: GuardControl;
  readonly cluster: string;
  /** Limits the overview to its scope. */
  readonly caller: Caller;
}

/** Reads the state of a cluster with a bounded number of reads. */
export async function readOverview(input: OverviewInput): Promise<Overview> {
  const { access, cluster, caller } = input;
  const clusters = (await access.clusters()).filter((name) =>
    touches(caller.scope, { cluster: name }),
  );
  const frame = {
    cluster,
    clusters: [...new Set([cluster, ...clusters])].toSorted(),
    at: new Date().toISOString(),
  };
  if (!clusters.includes(cluster)) {
    const nothing = { controllers: [], workflows: [], workers: 0, activity: [] };
    return { ...frame, ...findProblems(NOTHING), ...nothing };
  }
  const found = await readFindings(input);
  const { controllers, workflows, workers } = found;
  return {
    ...frame,
    ...findProblems(found),
    controllers: [...controllers],
    workflows: [...workflows],
    workers: workers.length,
    activity: found.activity,
  };
}

const NOTHING: Findings = {
  controllers: [],
  workflows: [],
  runs: { blocked: [], failed: [] },
  workers: [],
  guards: [],
  restore: { held: [], progressMs: undefined },
  redis: { usedBytes: undefined, maxBytes: undefined },
  served: new Map(),
  episodes: [],
  loops: new Map(),
  pauses: [],
  sources: [],
  auditTargets: [],
  notifications: [],
  troubles: new Map(),
};

async function readFindings({
  access,
  guards,
  cluster,
  caller,
}: OverviewInput): Promise<Findings & Pick<Overview, "activity">> {
  const history = await access.history(cluster);
  const [
    announced,
    workers,
    guard,
    restore,
    { usedBytes, maxBytes },
    gauges,
    { served, memoryHighMs: highMs },
    { items: rows },
    stored,
    isSeen,
    ofSources,
    auditTargets,
    notifications,
  ] = await Promise.all([
    access.controllers(cluster),
    access.workers(cluster),
    guards.read(cluster),
    access.restore.read(cluster),
    access.readServer(),
    access.gauges(cluster).read(MINUTES),
    access.gauges(cluster).known(),
    history.search({ limit: SAMPLED }),
    history.loops(),
    objectFilter(access, caller, cluster),
    access.sources(cluster),
    isUnrestricted(caller) ? access.audit.targets() : [],
    covers(caller.scope, { cluster }) ? readUndelivered(access, cluster) : [],
  ]);
  const loops = loopsOf(stored, caller);
  const { episodes } = await readVisibleEpisodes(history, {
    caller,
    loops,
    isSeen,
    known: announced,
  });
  const seen = announced.filter(({ name }) => touches(caller.scope, { cluster, controller: name }));
  const read = await Promise.all(
    seen.map((controller) =>
      readController(access, controller, { history, workers, rows, caller }),
    ),
  );
  const sourced = announced.filter(
    ({ name, sources }) =>
      sources !== undefined && covers(caller.scope, { cluster, controller: name }),
  );
  const reports = sourced.length === 0 ? [] : await ofSources.store.reports();
  const { workflows, runs } = await readWorkflows(access, { cluster, caller, workers });
  const pauses = read.flatMap(({ row, pauses: found }) =>
    found.map((pause) => ({ controller: row.name, ...pause })),
  );
  return {
    controllers: read
      .map(({ row }) => row)
      .toSorted((one, other) => one.name.localeCompare(other.name)),
    workflows,
    runs,
    workers,
    guards: guard === undefined ? [] : [guard],
    restore,
    redis: { usedBytes, maxBytes, highMs },
    served,
    episodes,
    loops,
    pauses: visiblePauses(caller, cluster, { items: pauses }).items,
    sources: sourceViews(sourced, reports),
    auditTargets,
    notifications,
    troubles: new Map(read.map(({ row, trouble }) => [row.name, trouble])),
    activity: activityMinutes({
      minutes: MINUTES,
      rollups: read.flatMap(({ rollups }) => rollups),
      gauges,
      controllers: seen.map(({ name }) => name),
      isSingle: false,
    }),
  };
}

/** Reads the messages that their receivers have not accepted, of the newest ones. */
async function readUndelivered(
  access: QueueAccess,
  cluster: string,
): Promise<readonly NotificationRecord[]> {
  const store = await access.notifications(cluster);
  const [waiting, newest] = await Promise.all([store.waiting(), store.list(MESSAGES)]);
  return [...waiting, ...newest.filter(({ state }) => state === "failed")];
}

async function readController(
  access: QueueAccess,
  announced: AnnouncedController,
  {
    history,
    workers,
    rows,
    caller,
  }: {
    readonly history: HistoryReader;
    readonly workers: readonly AnnouncedWorker[];
    readonly rows: readonly AttemptRow[];
    readonly caller: Caller;
  },
) {
  const { name, cluster, kind, group, version, resource, scope } = announced;
  const { queue } = await access.find(cluster, name);
  const [lengths, oldestRequestAgeMs, rollups, dead, pauses] = await Promise.all([
    queue.counts(),
    readOldest(access, announced),
    history.rollups(name, MINUTES),
    queue.control.listKeys({
      phase: "deadLettered",
      limit: MOST_DEAD,
      ...defined({ namespaces: caller.scope.namespaces }),
    }),
    queue.control.listPauses(),
  ]);
  const own = rows.filter(({ key }) => {
    return parseKey(key).controller === name && covers(caller.scope, placeOf(key));
  });
  const counts = rollups.map((each) => each.counts);
  const [p50Ms, p99Ms] = [0.5, 0.99].map((share) => durationQuantile(counts, share));
  const row: OverviewController = {
    name,
    kind,
    group,
    version,
    resource,
    scope,
    ...lengths,
    ...defined({ oldestRequestAgeMs }),
    workers: workers.filter(({ controllers }) => controllers.includes(name)).length,
    ...defined({ slots: slotsOf(workers, name), p50Ms, p99Ms }),
    deadLetters: dead.items.length,
    minutes: minutesOf(rollups),
  };
  const lost = rollups.reduce((sum, each) => sum + (each.counts["outcome.lost"] ?? 0), 0);
  const trouble: ControllerTrouble = {
    lost,
    lostMs: rollups.findLast(({ counts: { "outcome.lost": some = 0 } }) => some > 0)?.atMs,
    deadLetters: dead.items.flatMap(({ deadLetter }) =>
      deadLetter === undefined
        ? []
        : [{ since: deadLetter.since, ...defined({ error: deadLetter.error?.message }) }],
    ),
    errors: await errorsOf(own, { history, controller: name, minutes: row.minutes, caller }),
  };
  return { row, trouble, rollups, pauses: pauses.map(pauseView) };
}

/** Adds up the slots of the workers that run a controller; undefined if one of them does not report them, or without a worker. */
function slotsOf(workers: readonly AnnouncedWorker[], controller: string): number | undefined {
  const limits = workers
    .filter(({ controllers, role }) => controllers.includes(controller) && role !== "watch")
    .map(({ load }) => load?.slots[controller]?.limit);
  return limits.length === 0 || limits.includes(undefined)
    ? undefined
    : limits.reduce<number>((sum, limit = 0) => sum + limit, 0);
}

/** Returns the age of the oldest job at either end: prioritized jobs are not sorted by age. */
async function readOldest(
  access: QueueAccess,
  announced: AnnouncedController,
): Promise<number | undefined> {
  const queues = await access.rawQueues(announced);
  const lists = await Promise.all(
    queues.flatMap(({ queue }) =>
      [true, false].map((ascending) => queue.getJobs([...WAITING], 0, LOOKED_AT - 1, ascending)),
    ),
  );
  // A job that was taken meanwhile is undefined.
  const times = lists.flat().flatMap((job) => (job === undefined ? [] : [job.timestamp]));
  return times.length === 0 ? undefined : Math.max(0, Date.now() - Math.min(...times));
}

function minutesOf(rollups: readonly Rollup[]): OverviewController["minutes"] {
  const last = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const known = new Map(rollups.map(({ atMs, counts }) => [atMs, counts]));
  return Array.from({ length: MINUTES }, (_, index) => {
    const counts = known.get(last - (MINUTES - 1 - index) * MINUTE_MS);
    return outcomesOf(counts === undefined ? [] : [counts]);
  });
}
