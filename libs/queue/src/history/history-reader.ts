import {
  closeRedis,
  openProducer,
  withRedis,
  type RedisClient,
  type RedisTarget,
  DEFAULT_PREFIX,
} from "@konverge/redis";
import { decodeRow, type AttemptRow } from "./attempt-row.ts";
import { searchAttempts, type AttemptPage, type AttemptQuery } from "./attempt-search.ts";
import { HOUR_MS, historyNames, MINUTE_MS, type HistoryNames } from "./history-names.ts";

const MOST_CONTENDED = 100;

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

/** Counters of one minute, by name, such as `outcome.done`, `conflicts`, `ms`. */
export interface Rollup {
  readonly atMs: number;
  readonly counts: Readonly<Record<string, number>>;
}

/** Reads the history of attempts. Read-only. All methods reject with `redis_unavailable` if Redis is unavailable. */
export interface HistoryReader {
  /** @throws KonvergeError `invalid_request` for an invalid cursor */
  search(query: AttemptQuery): Promise<AttemptPage>;
  /** Latest first; empty without contention. */
  contention(object: string): Promise<ContentionEntry[]>;
  contentionReport(hours: number): Promise<ContentionReport>;
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
    search: (query) => withRedis(redis, () => searchAttempts(redis, names, query)),
    contention: (object) =>
      withRedis(redis, async () => {
        const pairs = Object.entries(await redis.hgetall(names.contention(object)));
        return pairs
          .map(([pair, value]) => contentionEntryOf(pair, value))
          .toSorted((left, right) => right.lastMs - left.lastMs);
      }),
    contentionReport: (hours) => withRedis(redis, () => reportContention(redis, names, hours)),
    rollups: (controller, minutes) =>
      withRedis(redis, () => readRollups(redis, names, controller, minutes)),
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

/** Adds up the sorted sets of the last hours. */
async function sumOfHours(
  redis: RedisClient,
  nameOf: (hour: number) => string,
  hours: number,
): Promise<[member: string, sum: number][]> {
  const now = Math.floor(Date.now() / HOUR_MS);
  const sums = new Map<string, number>();
  const sets = await Promise.all(
    Array.from({ length: hours + 1 }, (_, ago) =>
      redis.zrevrange(nameOf(now - ago), 0, MOST_CONTENDED - 1, "WITHSCORES"),
    ),
  );
  for (const set of sets) {
    for (let at = 0; at + 1 < set.length; at += 2) {
      const member = set[at] ?? "";
      sums.set(member, (sums.get(member) ?? 0) + Number(set[at + 1]));
    }
  }
  return [...sums].toSorted(([, left], [, right]) => right - left).slice(0, MOST_CONTENDED);
}

async function readRollups(
  redis: RedisClient,
  names: HistoryNames,
  controller: string,
  minutes: number,
): Promise<Rollup[]> {
  const now = Math.floor(Date.now() / MINUTE_MS);
  const read = await Promise.all(
    Array.from({ length: minutes }, async (_, ago) => {
      const counts = await redis.hgetall(names.rollup(controller, now - ago));
      const numbers = Object.entries(counts).map(([name, text]) => [name, Number(text)]);
      return { atMs: (now - ago) * MINUTE_MS, counts: Object.fromEntries(numbers) };
    }),
  );
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
