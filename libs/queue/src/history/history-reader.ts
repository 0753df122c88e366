import { KonvergeError, namespaceSegment, parseKey } from "@konverge/core";
import {
  closeRedis,
  openProducer,
  withRedis,
  type RedisTarget,
  DEFAULT_PREFIX,
} from "@konverge/redis";
import { decodeRow, type AttemptRow } from "./attempt-row.ts";
import { HOUR_MS, historyNames, MINUTE_MS } from "./history-names.ts";

/** Rows per round trip, and looked at by one search before it hands back a cursor. */
const CHUNK = 1_000;
const MOST_SCANNED = 20_000;
const MOST_CONTENDED = 100;

/** All that is given must hold. */
export interface AttemptQuery {
  readonly controller?: string | undefined;
  /** Plural, or `plural.group`. */
  readonly resource?: string | undefined;
  /** `_` for cluster-scoped objects. */
  readonly namespace?: string | undefined;
  /** Any part of it. */
  readonly name?: string | undefined;
  readonly outcome?: string | undefined;
  readonly errorCode?: string | undefined;
  /** A field manager that won. */
  readonly manager?: string | undefined;
  readonly hint?: string | undefined;
  /** Only those that lost a race to a manager that is known. */
  readonly contested?: boolean | undefined;
  readonly limit: number;
  /** Of an earlier page. */
  readonly cursor?: string | undefined;
}

export interface AttemptPage {
  /** Newest first. */
  readonly items: readonly AttemptRow[];
  /** Where to go on. A page may be short, or empty, and still have one: a search looks at 20,000 attempts at a time. */
  readonly next?: string;
}

/** A manager and a field in a fight about an object. */
export interface ContentionEntry {
  readonly kind: "conflict" | "takeover";
  readonly manager: string;
  readonly path: string;
  /** Within 24 h of the last time, and since the last pause of 10 minutes. */
  readonly count: number;
  readonly inEpisode: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

export interface ContentionReport {
  /** Objects by lost races, most first. */
  readonly contendedObjects: readonly { readonly object: string; readonly conflicts: number }[];
  /** Fields that went to and fro between us and a manager, most first. */
  readonly ownershipFlips: readonly {
    readonly object: string;
    readonly manager: string;
    readonly path: string;
    readonly count: number;
  }[];
  /** Keys that are throttled now: the state that the engine stored. */
  readonly loops: ReadonlyMap<string, string>;
}

/** Counts of one minute, by name, such as `outcome.done`, `conflicts`, `ms`. */
export interface Rollup {
  readonly atMs: number;
  readonly counts: Readonly<Record<string, number>>;
}

/** Reads what explains attempts. Changes nothing. All reject with `redis_unavailable` when Redis is away. */
export interface HistoryReader {
  /** @throws KonvergeError `invalid_request` for a cursor that was never given */
  search(query: AttemptQuery): Promise<AttemptPage>;
  /** Latest first; empty when nobody fought. */
  contention(object: string): Promise<ContentionEntry[]>;
  contentionReport(hours: number): Promise<ContentionReport>;
  /** The last minutes in which the controller did something, newest first. */
  rollups(controller: string, minutes: number): Promise<Rollup[]>;
  /** Behind `id` of the search index, oldest first. Attempts come into it within a second of their end. */
  after(id: string, limit: number): Promise<{ readonly id: string; readonly row: AttemptRow }[]>;
  /** The newest id, to begin behind. */
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

  /** Adds up the sorted sets of the last hours. */
  const sum = async (nameOf: (hour: number) => string, hours: number) => {
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
  };

  return {
    search: (query) =>
      withRedis(redis, async () => {
        const found: AttemptRow[] = [];
        let end = query.cursor === undefined ? "+" : `(${checkCursor(query.cursor)}`;
        for (let scanned = 0; scanned < MOST_SCANNED; scanned += CHUNK) {
          const chunk = await redis.xrevrange(names.index, end, "-", "COUNT", CHUNK);
          for (const [id, [, text = ""]] of chunk) {
            const row = decodeRow(text);
            if (!matches(row, query)) continue;
            found.push(row);
            if (found.length === query.limit) return { items: found, next: id };
          }
          const last = chunk.at(-1);
          if (last === undefined || chunk.length < CHUNK) return { items: found };
          end = `(${last[0]}`;
        }
        return { items: found, next: end.slice(1) };
      }),
    contention: (object) =>
      withRedis(redis, async () => {
        const pairs = Object.entries(await redis.hgetall(names.contention(object)));
        return pairs
          .map(([pair, value]) => contenderOf(pair, value))
          .toSorted((left, right) => right.lastMs - left.lastMs);
      }),
    contentionReport: (hours) =>
      withRedis(redis, async () => {
        const [contendedObjects, ownershipFlips, loops] = await Promise.all([
          sum(names.contended, hours),
          sum(names.ownershipFlips, hours),
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
      }),
    rollups: (controller, minutes) =>
      withRedis(redis, async () => {
        const now = Math.floor(Date.now() / MINUTE_MS);
        const read = await Promise.all(
          Array.from({ length: minutes }, async (_, ago) => {
            const counts = await redis.hgetall(names.rollup(controller, now - ago));
            const numbers = Object.entries(counts).map(([name, text]) => [name, Number(text)]);
            return { atMs: (now - ago) * MINUTE_MS, counts: Object.fromEntries(numbers) };
          }),
        );
        return read.filter(({ counts }) => Object.keys(counts).length > 0);
      }),
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

function checkCursor(cursor: string): string {
  if (/^\d+-\d+$/.test(cursor)) return cursor;
  const detail = `cursor is "${cursor}"; write the "next" of an earlier answer, or leave it out`;
  throw new KonvergeError("invalid_request", detail, {
    issues: [{ pointer: "/cursor", detail }],
  });
}

function matches(row: AttemptRow, query: AttemptQuery): boolean {
  if (query.outcome !== undefined && row.outcome !== query.outcome) return false;
  if (query.errorCode !== undefined && !hasCode(row, query.errorCode)) return false;
  if (query.manager !== undefined && !row.managers.includes(query.manager)) return false;
  if (query.contested === true && row.managers.length === 0) return false;
  if (query.hint !== undefined && !row.hints.includes(query.hint)) return false;
  const { controller, resource, namespace, name } = query;
  if ((controller ?? resource ?? namespace ?? name) === undefined) return true;
  const key = parseKey(row.key);
  if (controller !== undefined && key.controller !== controller) return false;
  if (namespace !== undefined && namespaceSegment(key.namespace) !== namespace) return false;
  if (name !== undefined && !key.name.includes(name)) return false;
  return resource === undefined || isOfResource(key, resource);
}

/** Of an API server's error, `kube_api.AlreadyExists` in full, either part will do. */
function hasCode({ errorCode }: AttemptRow, wanted: string): boolean {
  return errorCode === wanted || errorCode.split(".").includes(wanted);
}

function isOfResource(key: { resource: string; group: string }, wanted: string): boolean {
  return key.resource === wanted || `${key.resource}.${key.group}` === wanted;
}

function contenderOf(pair: string, value: string): ContentionEntry {
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
