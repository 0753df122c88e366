import { KonvergeError, type Fault } from "@konverge/core";
import { DEFAULT_PREFIX, withRedis, type RedisClient } from "@konverge/redis";
import { notificationNames } from "./notification-names.ts";

/** Faults that other parts can publish at a time. Each needs about 300 bytes. */
const MOST_PUBLISHED = 10_000;
const MAX_TEXT = 300;

export interface FaultPlace {
  readonly cluster: string;
  readonly prefix?: string;
}

/** Returns the id of a fault, which identifies it in messages. */
export function faultId({ event, subject }: Pick<Fault, "event" | "subject">): string {
  return `${event}/${subject}`;
}

/**
 * Publishes a fault that only the caller can observe. It stays published until
 * `withdrawFault`. A repetition replaces the text. Returns false if too many faults are published.
 * @throws KonvergeError `invalid_request` for an empty or too long text, `redis_unavailable`
 */
export async function publishFault(
  redis: RedisClient,
  { cluster, prefix = DEFAULT_PREFIX }: FaultPlace,
  fault: Fault,
): Promise<boolean> {
  for (const field of ["subject", "group", "summary"] as const) {
    const { length } = fault[field];
    if (length > 0 && length <= MAX_TEXT * (field === "subject" ? 4 : 1)) continue;
    throw new KonvergeError("invalid_request", `${field}: must have 1 to ${MAX_TEXT} characters`);
  }
  const { published } = notificationNames(prefix, cluster);
  const id = faultId(fault);
  const [count, isKnown] = await withRedis(redis, () =>
    Promise.all([redis.hlen(published), redis.hexists(published, id)]),
  );
  if (count >= MOST_PUBLISHED && isKnown === 0) return false;
  await withRedis(redis, () => redis.hset(published, id, JSON.stringify(fault)));
  return true;
}

/** Ends a published fault. Receivers whose format has resolved faults are notified. @throws KonvergeError `redis_unavailable` */
export async function withdrawFault(
  redis: RedisClient,
  { cluster, prefix = DEFAULT_PREFIX }: FaultPlace,
  fault: Pick<Fault, "event" | "subject">,
): Promise<void> {
  const { published } = notificationNames(prefix, cluster);
  await withRedis(redis, () => redis.hdel(published, faultId(fault)));
}
