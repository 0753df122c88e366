import { ensureError, namespaceSegment } from "@konverge/core";
import {
  closeRedis,
  openProducer,
  runScript,
  withRedis,
  type RedisClient,
  type RedisTarget,
  DEFAULT_PREFIX,
} from "@konverge/redis";
import { dropAttemptsScript } from "../scripts/drop-attempts.ts";
import { indexAttemptsScript } from "../scripts/index-attempts.ts";
import { memoryScript } from "../scripts/memory-of.ts";
import { noteContentionScript } from "../scripts/note-contention.ts";
import { decodeRow, encodeRow, type AttemptRow } from "./attempt-row.ts";
import { HOUR_MS, historyNames, MINUTE_MS } from "./history-names.ts";

/** Bytes that Redis needs for a row besides its text, and for an entry of an attempt's stream besides its record. */
const ENTRY_OVERHEAD_BYTES = 150;
const CONTENTION_KEPT_MS: number = 24 * HOUR_MS;
const ROLLUPS_KEPT_MS: number = 24 * HOUR_MS;
/** A fight that pauses for longer begins anew. */
const EPISODE_PAUSE_MS: number = 10 * MINUTE_MS;
const PAIRS_KEPT = 64;
const MEMBERS_KEPT = 500;
const LOOPS_KEPT = 200;
/** Rows dropped per flush when there is need, beyond twice those that were added. */
const DROPPED_AT_LEAST = 200;
const ROWS_PER_CALL = 500;
const DROPPED_WHEN_FULL = 2_000;
/** From this share of Redis's memory on, records make room for the queue. */
const TIGHT_SHARE = 0.85;
const FREED_WHEN_TIGHT_BYTES = 1_000_000;
const MEMORY_LOOKED_AT_MS = 10_000;

/** One manager and one field of an object: how often it won against us, or how often we took the field from it. */
export interface ContentionPair {
  readonly kind: "conflict" | "takeover";
  readonly manager: string;
  readonly path: string;
  readonly count: number;
}

export interface ContentionNote {
  /** {@link contentionObject} of the object. */
  readonly object: string;
  /** Writes of ours that lost a race. */
  readonly conflicts: number;
  readonly pairs: readonly ContentionPair[];
}

export interface RollupNote {
  readonly controller: string;
  /** Since 1970. */
  readonly minute: number;
  /** What to add to which count. */
  readonly counts: Readonly<Record<string, number>>;
}

/** What a worker gathered since the last time. */
export interface HistoryBatch {
  readonly rows: readonly { readonly row: AttemptRow; readonly recordBytes: number }[];
  readonly contention: readonly ContentionNote[];
  readonly rollups: readonly RollupNote[];
  /** Things to say, unless they were said within `sayAgainMs` by any worker. */
  readonly reports: readonly string[];
  readonly reportAgainMs: number;
  /** By key; undefined ends it. */
  readonly loops: ReadonlyMap<string, string | undefined>;
}

export interface HistoryAnswer {
  /** Of `fights`, per pair its count in this episode, over all workers. */
  readonly episodes: readonly {
    readonly object: string;
    readonly pair: ContentionPair;
    readonly count: number;
  }[];
  /** Of `say`, what nobody has said yet. */
  readonly toSay: ReadonlySet<string>;
  /** Of the whole fleet, by key. */
  readonly loops: ReadonlyMap<string, string>;
}

/**
 * Stores what explains attempts besides their records. Best effort, in one round trip, and never waited for by an attempt;
 * when Redis is short of memory it drops the oldest records before anything that the queue needs is refused.
 */
export interface HistoryWriter {
  /** @throws KonvergeError `redis_unavailable`; what was given is then lost. */
  flush(batch: HistoryBatch): Promise<HistoryAnswer>;
  close(): Promise<void>;
}

export interface HistoryWriterOptions {
  readonly redis: RedisTarget;
  readonly cluster: string;
  readonly prefix?: string;
  /** Of the cluster's queues. Default 1. */
  readonly shards?: number;
  /** What records and index of the cluster may take, in bytes. The oldest go first. */
  readonly budgetBytes: number;
  /** Told of lost connections. */
  readonly onError: (error: Error) => void;
}

export function createHistoryWriter(options: HistoryWriterOptions): HistoryWriter {
  const { cluster, prefix = DEFAULT_PREFIX, budgetBytes, onError } = options;
  const names = historyNames(prefix, cluster, options.shards);
  const redis = openProducer(options.redis);
  redis.on("error", onError);
  const isTight = watchMemory(redis, names.index);

  const index = async ({ rows }: HistoryBatch): Promise<void> => {
    const beyond = (await isTight()) ? FREED_WHEN_TIGHT_BYTES : 0;
    if (rows.length === 0 && beyond === 0) return;
    try {
      // At least once, to free what is to be freed; in parts, since Redis does nothing else meanwhile.
      for (let start = 0; start === 0 || start < rows.length; start += ROWS_PER_CALL) {
        await indexPart(rows.slice(start, start + ROWS_PER_CALL), start === 0 ? beyond : 0);
      }
    } catch (error) {
      if (!isOutOfMemory(error)) throw error;
      await makeRoom();
    }
  };
  const indexPart = async (rows: HistoryBatch["rows"], beyond: number): Promise<void> => {
    const over = await runScript(redis, indexAttemptsScript, {
      keys: { index: names.index },
      args: {
        budget: budgetBytes,
        most: Math.max(DROPPED_AT_LEAST, 2 * rows.length),
        beyond,
      },
      each: rows.map(({ row, recordBytes }) => {
        const text = encodeRow(row);
        const bytes = Buffer.byteLength(text) + recordBytes + 2 * ENTRY_OVERHEAD_BYTES;
        return { text, bytes };
      }),
    });
    await drop(pairsOf(over));
  };
  /** Reading and trimming are allowed even to a Redis that is full. */
  const makeRoom = async (): Promise<void> => {
    const oldest = await redis.xrange(names.index, "-", "+", "COUNT", DROPPED_WHEN_FULL);
    await drop(oldest.map(([id, [, text = ""]]) => ({ id, text })));
  };
  /** The records first: what is still in the index will be found again. */
  const drop = async (over: readonly { readonly id: string; readonly text: string }[]) => {
    const last = over.at(-1);
    if (last === undefined) return;
    const newest = new Map(over.map(({ id, text }) => [decodeRow(text).key, id]));
    await Promise.all(
      [...newest].map(([key, id]) => {
        const untilMs = Number(id.slice(0, id.indexOf("-")));
        return runScript(redis, dropAttemptsScript, {
          keys: { attempts: names.attempts(key) },
          args: { untilMs },
        });
      }),
    );
    await redis.xtrim(names.index, "MINID", after(last.id));
  };

  const noteContention = async ({
    contention,
  }: HistoryBatch): Promise<HistoryAnswer["episodes"]> => {
    const hour = Math.floor(Date.now() / HOUR_MS);
    const noted = await Promise.all(
      contention.map(async ({ object, conflicts, pairs }) => {
        const counts = await runScript(redis, noteContentionScript, {
          keys: {
            contention: names.contention(object),
            hot: names.contended(hour),
            flips: names.ownershipFlips(hour),
          },
          args: {
            object,
            pauseMs: EPISODE_PAUSE_MS,
            retentionMs: CONTENTION_KEPT_MS,
            most: PAIRS_KEPT,
            members: MEMBERS_KEPT,
            lost: conflicts,
          },
          each: pairs,
        });
        return pairs.map((pair, at) => ({ object, pair, count: counts[at] ?? 0 }));
      }),
    );
    return noted.flat();
  };

  const addUp = async ({ rollups }: HistoryBatch): Promise<void> => {
    await Promise.all(
      rollups.map(async ({ controller, minute, counts }) => {
        const key = names.rollup(controller, minute);
        const adds = Object.entries(counts).map(([name, by]) => redis.hincrby(key, name, by));
        await Promise.all([...adds, redis.pexpire(key, ROLLUPS_KEPT_MS)]);
      }),
    );
  };

  const claimReports = async ({
    reports: say,
    reportAgainMs,
  }: HistoryBatch): Promise<Set<string>> => {
    const claims = await Promise.all(
      say.map((what) => redis.set(names.said(what), "1", "PX", reportAgainMs, "NX")),
    );
    return new Set(say.filter((_, at) => claims[at] === "OK"));
  };

  const shareLoops = async ({ loops }: HistoryBatch): Promise<Map<string, string>> => {
    const known = new Map(Object.entries(await redis.hgetall(names.loops)));
    for (const [key, state] of loops) {
      if (state === undefined) known.delete(key);
      else if (known.has(key) || known.size < LOOPS_KEPT) known.set(key, state);
    }
    const set = [...loops.keys()].flatMap((key) => {
      const state = loops.get(key) === undefined ? undefined : known.get(key);
      return state === undefined ? [] : [key, state];
    });
    const ended = [...loops.keys()].filter((key) => loops.get(key) === undefined);
    await Promise.all([
      ...(set.length === 0 ? [] : [redis.hset(names.loops, ...set)]),
      ...(ended.length === 0 ? [] : [redis.hdel(names.loops, ...ended)]),
    ]);
    return known;
  };

  return {
    flush: (batch) =>
      withRedis(redis, async () => {
        const [episodes, toSay, loops] = await Promise.all([
          noteContention(batch),
          claimReports(batch),
          shareLoops(batch),
          addUp(batch),
          index(batch),
        ]);
        return { episodes, toSay, loops };
      }),
    close: () => closeRedis(redis),
  };
}

/** Names an object whatever controller looks at it, and whatever version of its kind. */
export function contentionObject(target: {
  /** `plural.group`. */
  readonly resource: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}): string {
  const { resource, namespace, name } = target;
  return [resource, namespaceSegment(namespace), name].map(encodeURIComponent).join("/");
}

/** Looks at most every 10 s, where `key` lies. A Redis without a limit is never tight. */
function watchMemory(redis: RedisClient, key: string): () => Promise<boolean> {
  let lookedAtMs = -Infinity;
  let tight = false;
  return async () => {
    if (performance.now() - lookedAtMs < MEMORY_LOOKED_AT_MS) return tight;
    lookedAtMs = performance.now();
    const info = await runScript(redis, memoryScript, { keys: { _key: key } });
    const read = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
    const limit = read("maxmemory");
    tight = limit > 0 && read("used_memory") > TIGHT_SHARE * limit;
    return tight;
  };
}

function isOutOfMemory(error: unknown): boolean {
  return /\bOOM\b/.test(ensureError(error).message);
}

/** The next id of a stream. */
function after(id: string): string {
  const [ms = "0", serial = "0"] = id.split("-");
  return `${ms}-${Number(serial) + 1}`;
}

function pairsOf(flat: readonly string[]): { id: string; text: string }[] {
  const pairs: { id: string; text: string }[] = [];
  for (let at = 0; at + 1 < flat.length; at += 2) {
    pairs.push({ id: flat[at] ?? "", text: flat[at + 1] ?? "" });
  }
  return pairs;
}
