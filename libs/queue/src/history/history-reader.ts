import {
  closeRedis,
  openProducer,
  runScript,
  withRedis,
  type RedisClient,
  type RedisTarget,
  DEFAULT_PREFIX,
} from "@konverge/redis";
import { decodeRow, type AttemptRow } from "./attempt-row.ts";
import { searchAttempts, type AttemptPage, type AttemptQuery } from "./attempt-search.ts";
import { wastedWritesScript } from "../scripts/wasted-writes.ts";
import type { ScanOptions } from "../contract/scan-options.ts";
import { HOUR_MS, historyNames, MINUTE_MS, type HistoryNames } from "./history-names.ts";

const MOST_CONTENDED = 100;
const MINUTES_OF_WASTE = 60;
/** Minutes of counters per round trip. */
const MINUTES_AT_ONCE = 240;

/** A field manager and a field in contention for an object. */
export interface ContentionEntry {
  readonly kind: "conflict" | "takeover";
  readonly manager: string;
  readonly path: string;
  /** Until 24 h after the last occurrence. */
  readonly count: number;
  /** Since the last pause of 10 minutes. */
  readonly inEpisode: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

export interface ContentionReport {
  /** Objects by conflicts, most first. */
  readonly contendedObjects: readonly { readonly object: string; readonly conflicts: number }[];
  /** Fields whose ownership alternated between Konverge and another manager, most changes first. */
  readonly ownershipFlips: readonly {
    readonly object: string;
    readonly manager: string;
    readonly path: string;
    readonly count: number;
  }[];
  /** Throttled keys with the state that the engine stored. */
  readonly loops: ReadonlyMap<string, string>;
}

/** Writes of a controller to an object without a lasting effect: conflicts, overwrites and writes in a loop. */
export interface WastedWrites {
  readonly object: string;
  readonly controller: string;
  /** Per minute of the last hour, oldest first. The last one is incomplete. */
  readonly minutes: readonly number[];
}

interface CompetingManager {
  readonly controller: string;
  readonly manager: string;
  /** Attempts of the controller that conflicted with a write of the manager. */
  readonly attempts: number;
}

/** Counters of one minute, by name, such as `outcome.done`, `conflicts`, `ms`. */
export interface Rollup {
  readonly atMs: number;
  readonly counts: Readonly<Record<string, number>>;
}

/** Reads the history of attempts. Read-only. All methods reject with `redis_unavailable` if Redis is unavailable. */
export interface HistoryReader {
  /** @throws KonvergeError `invalid_request` for an invalid cursor */
  search(query: AttemptQuery, options?: ScanOptions): Promise<AttemptPage>;
  /** Latest first; empty without contention. */
  contention(object: string): Promise<ContentionEntry[]>;
  contentionReport(hours: number): Promise<ContentionReport>;
  /** The stored loop states by key. */
  loops(): Promise<ReadonlyMap<string, string>>;
  /** The last hour, most writes first. */
  wastedWrites(): Promise<WastedWrites[]>;
  /** Counts the attempts with conflicts, most first; only those in `namespaces`, if given. `_` is for cluster-scoped objects. */
  competingManagers(hours: number, namespaces?: readonly string[]): Promise<CompetingManager[]>;
  /** The minutes in which the controller was active, newest first. */
  rollups(controller: string, minutes: number): Promise<Rollup[]>;
  /** Returns the rows after `id` of the search index, oldest first. Attempts are indexed within a second of their end. */
  after(id: string, limit: number): Promise<{ readonly id: string; readonly row: AttemptRow }[]>;
  /** The newest id, as a start for `after`. */
  last(): Promise<string>;
  close(): Promise<void>;
}

export interface HistoryReaderOptions {
  readonly redis: RedisTarget;
  readonly cluster: string;
  readonly prefix?: string;
  readonly onError: (error: Error) => void;
}

export function createHistoryReader(options: HistoryReaderOptions): HistoryReader {
  const { cluster, prefix = DEFAULT_PREFIX, onError } = options;
  const names = historyNames(prefix, cluster);
  const redis = openProducer(options.redis);
  redis.on("error", onError);
  return {
    search: (query, scan) => searchAttempts(redis, names, query, scan),
    contention: (object) =>
      withRedis(redis, async () => {
        const pairs = Object.entries(await redis.hgetall(names.contention(object)));
        return pairs
          .map(([pair, value]) => contentionEntryOf(pair, value))
          .toSorted((left, right) => right.lastMs - left.lastMs);
      }),
    contentionReport: (hours) => withRedis(redis, () => reportContention(redis, names, hours)),
    loops: () =>
      withRedis(redis, async () => new Map(Object.entries(await redis.hgetall(names.loops)))),
    wastedWrites: () => withRedis(redis, () => readWasted(redis, names)),
    competingManagers: (hours, namespaces) =>
      withRedis(redis, () => readCompeting(redis, names, hours, namespaces)),
    rollups: (controller, minutes) => readRollups(redis, names, controller, minutes),
    async after(id, limit) {
      const rows = await withRedis(redis, () =>
        redis.xrange(names.index, `(${id}`, "+", "COUNT", limit),
      );
      return rows.map(([at, [, text = ""]]) => ({ id: at, row: decodeRow(text) }));
    },
    async last() {
      const [row] = await withRedis(redis, () =>
        redis.xrevrange(names.index, "+", "-", "COUNT", 1),
      );
      return row?.[0] ?? "0-0";
    },
    close: () => closeRedis(redis),
  };
}

async function reportContention(
  redis: RedisClient,
  names: HistoryNames,
  hours: number,
): Promise<ContentionReport> {
  const [contendedObjects, ownershipFlips, loops] = await Promise.all([
    sumOfHours(redis, names.contended, hours),
    sumOfHours(redis, names.ownershipFlips, hours),
    redis.hgetall(names.loops),
  ]);
  return {
    contendedObjects: contendedObjects.map(([object, conflicts]) => ({ object, conflicts })),
    ownershipFlips: ownershipFlips.map(([member, count]) => {
      const [object = "", manager = "", path = ""] = member.split("\n");
      return { object, manager, path, count };
    }),
    loops: new Map(Object.entries(loops)),
  };
}

async function readCompeting(
  redis: RedisClient,
  names: HistoryNames,
  hours: number,
  namespaces: readonly string[] | undefined,
): Promise<CompetingManager[]> {
  const nameOf = namespaces === undefined ? names.competing : names.competingIn;
  const sums = new Map<string, CompetingManager>();
  for (const [member, count] of await sumOfHours(redis, nameOf, hours, Infinity)) {
    const [controller = "", manager = "", namespace = ""] = member.split("\n");
    if (namespaces?.includes(namespace) === false) continue;
    const pair = `${controller}\n${manager}`;
    const attempts = (sums.get(pair)?.attempts ?? 0) + count;
    sums.set(pair, { controller, manager, attempts });
  }
  return [...sums.values()].toSorted((one, other) => other.attempts - one.attempts);
}

async function readWasted(redis: RedisClient, names: HistoryNames): Promise<WastedWrites[]> {
  const first = Math.floor(Date.now() / MINUTE_MS) - MINUTES_OF_WASTE + 1;
  const sets = await runScript(redis, wastedWritesScript, {
    args: { most: MOST_CONTENDED },
    each: Array.from({ length: MINUTES_OF_WASTE }, (_, at) => ({ set: names.wasted(first + at) })),
  });
  const found = new Map<string, number[]>();
  for (const [minute, set] of sets.entries()) {
    for (let at = 0; at + 1 < set.length; at += 2) {
      const member = set[at] ?? "";
      const minutes = found.get(member) ?? Array.from({ length: MINUTES_OF_WASTE }, () => 0);
      minutes[minute] = Number(set[at + 1]);
      found.set(member, minutes);
    }
  }
  const sum = (minutes: readonly number[]) => minutes.reduce((all, each) => all + each, 0);
  return [...found]
    .map(([member, minutes]) => {
      const [object = "", controller = ""] = member.split("\n");
      return { object, controller, minutes };
    })
    .toSorted((one, other) => sum(other.minutes) - sum(one.minutes));
}

/** Adds up the sorted sets of the last hours. */
async function sumOfHours(
  redis: RedisClient,
  nameOf: (hour: number) => string,
  hours: number,
  most = MOST_CONTENDED,
): Promise<[member: string, sum: number][]> {
  const now = Math.floor(Date.now() / HOUR_MS);
  const sums = new Map<string, number>();
  const sets = await Promise.all(
    Array.from({ length: hours + 1 }, (_, ago) =>
      redis.zrevrange(nameOf(now - ago), 0, most === Infinity ? -1 : most - 1, "WITHSCORES"),
    ),
  );
  for (const set of sets) {
    for (let at = 0; at + 1 < set.length; at += 2) {
      const member = set[at] ?? "";
      sums.set(member, (sums.get(member) ?? 0) + Number(set[at + 1]));
    }
  }
  return [...sums].toSorted(([, left], [, right]) => right - left).slice(0, most);
}

async function readRollups(
  redis: RedisClient,
  names: HistoryNames,
  controller: string,
  minutes: number,
): Promise<Rollup[]> {
  const now = Math.floor(Date.now() / MINUTE_MS);
  const read: Rollup[] = [];
  for (let from = 0; from < minutes; from += MINUTES_AT_ONCE) {
    const agos = Array.from(
      { length: Math.min(MINUTES_AT_ONCE, minutes - from) },
      (_, at) => from + at,
    );
    const part = await withRedis(redis, () =>
      Promise.all(agos.map((ago) => redis.hgetall(names.rollup(controller, now - ago)))),
    );
    for (const [at, counts] of part.entries()) {
      const numbers = Object.entries(counts).map(([name, text]) => [name, Number(text)]);
      read.push({ atMs: (now - from - at) * MINUTE_MS, counts: Object.fromEntries(numbers) });
    }
  }
  return read.filter(({ counts }) => Object.keys(counts).length > 0);
}

function contentionEntryOf(pair: string, value: string): ContentionEntry {
  const [kind, manager = "", path = ""] = pair.split("\n");
  const [count = 0, inEpisode = 0, firstMs = 0, lastMs = 0] = value.split(" ").map(Number);
  return {
    kind: kind === "takeover" ? "takeover" : "conflict",
    manager,
    path,
    count,
    inEpisode,
    firstMs,
    lastMs,
  };
}
