import { namespaceSegment, parseKey } from "@konverge/core";
import {
  closeRedis,
  openProducer,
  runScript,
  withRedis,
  type RedisClient,
  type RedisTarget,
  DEFAULT_PREFIX,
} from "@konverge/redis";
import { noteContentionScript } from "../scripts/note-contention.ts";
import type { ReadServerState } from "../scripts/server-state.ts";
import type { HistoryAnswer, HistoryBatch } from "./history-batch.ts";
import { EPISODE_PAUSE_MS, HOUR_MS, historyNames, type HistoryNames } from "./history-names.ts";
import { RecordIndex } from "./record-index.ts";

const CONTENTION_KEPT_MS: number = 24 * HOUR_MS;
const ROLLUPS_KEPT_MS: number = 24 * HOUR_MS;
const PAIRS_KEPT = 64;
const MEMBERS_KEPT = 500;
const LOOPS_KEPT = 200;
const WASTED_KEPT = 200;
const WASTED_KEPT_MS: number = 2 * HOUR_MS;

/**
 * Stores the history of attempts besides their records. Best effort, in one round trip; no attempt waits for it. When
 * Redis is short of memory, the oldest records are dropped before Redis rejects writes of the queue.
 */
export interface HistoryWriter {
  /** @throws KonvergeError `redis_unavailable`; the batch is then lost. */
  flush(batch: HistoryBatch): Promise<HistoryAnswer>;
  /** Returns the state of the Redis server that has the history. @throws KonvergeError `redis_unavailable` */
  readServer(): Promise<ReadServerState>;
  close(): Promise<void>;
}

export interface HistoryWriterOptions {
  readonly redis: RedisTarget;
  readonly cluster: string;
  readonly prefix?: string;
  /** Shards of the cluster's queues. Default 1. */
  readonly shards?: number;
  /** Memory limit for the records and the index of the cluster, in bytes. The oldest records are dropped first. */
  readonly budgetBytes: number;
  /** Receives connection errors. */
  readonly onError: (error: Error) => void;
}

/** Returns the names of another cluster, or by default of the own one. */
type NamesOfCluster = (cluster: string | undefined) => HistoryNames;

export function createHistoryWriter(options: HistoryWriterOptions): HistoryWriter {
  const { cluster, prefix = DEFAULT_PREFIX, budgetBytes, onError } = options;
  const names = historyNames(prefix, cluster, options.shards);
  // The notes of objects are not sharded.
  const namesOf = (other: string | undefined) =>
    other === undefined ? names : historyNames(prefix, other);
  const redis = openProducer(options.redis);
  redis.on("error", onError);
  const index = new RecordIndex(redis, names, budgetBytes);
  return {
    flush: (batch) =>
      withRedis(redis, async () => {
        const [episodes, granted, loops] = await Promise.all([
          noteContention(redis, namesOf, batch),
          claimReports(redis, names, batch),
          shareLoops(redis, names, batch),
          addRollups(redis, names, batch),
          countCompeting(redis, names, batch),
          addWasted(redis, namesOf, batch),
          index.add(batch.rows),
        ]);
        return { episodes, granted, loops };
      }),
    readServer: () => withRedis(redis, () => index.readServer()),
    close: () => closeRedis(redis),
  };
}

async function noteContention(
  redis: RedisClient,
  namesOf: NamesOfCluster,
  { contention }: HistoryBatch,
): Promise<HistoryAnswer["episodes"]> {
  const hour = Math.floor(Date.now() / HOUR_MS);
  const noted = await Promise.all(
    contention.map(async ({ object, cluster, conflicts, pairs }) => {
      const names = namesOf(cluster);
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
      return pairs.map((pair, at) => ({ object, cluster, pair, count: counts[at] ?? 0 }));
    }),
  );
  return noted.flat();
}

/** Counts the attempts with conflicts, so that no reader needs to scan for them. */
async function countCompeting(
  redis: RedisClient,
  names: HistoryNames,
  { rows }: HistoryBatch,
): Promise<void> {
  const sums = new Map<string, Map<string, number>>();
  const count = (set: string, member: string) => {
    const members = sums.get(set) ?? new Map<string, number>();
    sums.set(set, members.set(member, (members.get(member) ?? 0) + 1));
  };
  for (const { row } of rows) {
    const hour = Math.floor((row.startedAtMs + row.durationMs) / HOUR_MS);
    for (const manager of row.managers) {
      const { controller, namespace } = parseKey(row.key);
      count(names.competing(hour), `${controller}\n${manager}`);
      count(names.competingIn(hour), `${controller}\n${manager}\n${namespaceSegment(namespace)}`);
    }
  }
  await Promise.all(
    [...sums].map(async ([set, members]) => {
      const adds = [...members].map(([member, by]) => redis.zincrby(set, by, member));
      const trim = redis.zremrangebyrank(set, 0, -MEMBERS_KEPT - 1);
      await Promise.all([...adds, trim, redis.pexpire(set, CONTENTION_KEPT_MS)]);
    }),
  );
}

async function addWasted(
  redis: RedisClient,
  namesOf: NamesOfCluster,
  { wasted }: HistoryBatch,
): Promise<void> {
  const bySet = Map.groupBy(wasted, ({ cluster, minute }) => namesOf(cluster).wasted(minute));
  await Promise.all(
    [...bySet].map(async ([set, notes]) => {
      const adds = notes.map(({ object, controller, writes }) =>
        redis.zincrby(set, writes, `${object}\n${controller}`),
      );
      const trim = redis.zremrangebyrank(set, 0, -WASTED_KEPT - 1);
      await Promise.all([...adds, trim, redis.pexpire(set, WASTED_KEPT_MS)]);
    }),
  );
}

async function addRollups(
  redis: RedisClient,
  names: HistoryNames,
  { rollups }: HistoryBatch,
): Promise<void> {
  await Promise.all(
    rollups.map(async ({ controller, minute, counts }) => {
      const key = names.rollup(controller, minute);
      const adds = Object.entries(counts).map(([name, by]) => redis.hincrby(key, name, by));
      await Promise.all([...adds, redis.pexpire(key, ROLLUPS_KEPT_MS)]);
    }),
  );
}

async function claimReports(
  redis: RedisClient,
  names: HistoryNames,
  { reports, reportAgainMs }: HistoryBatch,
): Promise<Set<string>> {
  const claims = await Promise.all(
    reports.map((report) => redis.set(names.said(report), "1", "PX", reportAgainMs, "NX")),
  );
  return new Set(reports.filter((_, at) => claims[at] === "OK"));
}

async function shareLoops(
  redis: RedisClient,
  names: HistoryNames,
  { loops }: HistoryBatch,
): Promise<Map<string, string>> {
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
}
