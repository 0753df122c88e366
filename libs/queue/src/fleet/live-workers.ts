import { readClockUs, type RedisClient } from "@konverge/redis";
import type { AnnouncedWorker } from "./announced.ts";

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
  await redis.hset(key, worker.workerId, JSON.stringify({ ...worker, seenAtMs: nowMs }));
  await redis.pexpire(key, WORKER_TTL_MS * 4);
  return livingAt(nowMs, Object.values(stored)).filter(
    ({ workerId }) => workerId !== worker.workerId,
  );
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
