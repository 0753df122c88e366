import { defined } from "@konverge/core";
import { MAX_CLOCK_SKEW_MS, readClockUs, type RedisClient } from "@konverge/redis";
import type { AnnouncedWorker, ClockSkew } from "./announced.ts";

export const HEARTBEAT_MS = 5_000;
/** A worker is removed from the list after three missed heartbeats. */
export const WORKER_TTL_MS: number = 3 * HEARTBEAT_MS;

interface StoredWorker extends AnnouncedWorker {
  /** By Redis's clock. */
  readonly seenAtMs: number;
}

/** Returns the workers of the hash `key` whose heartbeat is recent. */
export async function listLiveWorkers(redis: RedisClient, key: string): Promise<AnnouncedWorker[]> {
  const [stored, timeUs] = await Promise.all([redis.hvals(key), readClockUs(redis, key)]);
  return livingAt(timeUs / 1_000, stored);
}

/**
 * Stores a heartbeat of `worker` and returns the other live workers. Before Redis 7.4 the fields of a hash cannot expire, so
 * the time is stored and expired fields are removed here.
 */
export async function keepAlive(
  redis: RedisClient,
  key: string,
  worker: AnnouncedWorker,
): Promise<AnnouncedWorker[]> {
  const [stored, timeUs] = await Promise.all([redis.hgetall(key), readClockUs(redis, key)]);
  const nowMs = Math.floor(timeUs / 1_000);
  const expired = Object.entries(stored)
    .filter(([, text]) => (JSON.parse(text) as StoredWorker).seenAtMs + WORKER_TTL_MS * 2 < nowMs)
    .map(([id]) => id);
  if (expired.length > 0) await redis.hdel(key, ...expired);
  const clockSkew = skewOf(stored[worker.workerId], nowMs);
  const entry = { ...worker, ...defined({ clockSkew }), seenAtMs: nowMs };
  await redis.hset(key, worker.workerId, JSON.stringify(entry));
  await redis.pexpire(key, WORKER_TTL_MS * 4);
  return livingAt(nowMs, Object.values(stored)).filter(
    ({ workerId }) => workerId !== worker.workerId,
  );
}

/** Compares the clocks. The difference began with the first of the heartbeats that had one. */
function skewOf(before: string | undefined, nowMs: number): ClockSkew | undefined {
  const aheadMs = Date.now() - nowMs;
  if (Math.abs(aheadMs) <= MAX_CLOCK_SKEW_MS) return undefined;
  const known = before === undefined ? undefined : (JSON.parse(before) as StoredWorker);
  return { aheadMs, sinceMs: known?.clockSkew?.sinceMs ?? nowMs };
}

function livingAt(nowMs: number, stored: readonly string[]): AnnouncedWorker[] {
  return stored
    .map((text) => JSON.parse(text) as StoredWorker)
    .filter(({ seenAtMs }) => seenAtMs + WORKER_TTL_MS > nowMs)
    .map(withoutTime);
}

function withoutTime(stored: StoredWorker): AnnouncedWorker {
  const { seenAtMs: _, ...worker } = stored;
  return worker;
}
