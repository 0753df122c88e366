import { ensureError, isKonvergeError, type KonvergeError } from "@konverge/core";
import { explainRedisError } from "./explain-redis-error.ts";
import { PRODUCER_DEADLINE_MS, type RedisClient } from "./redis-target.ts";

const RETRY_AFTER_MS = 1_000;
const deadlines = new WeakMap<RedisClient, number>();

/** Sets the default deadline of the calls of a connection. */
export function setDeadline(redis: RedisClient, deadlineMs: number): void {
  deadlines.set(redis, deadlineMs);
}

/**
 * Runs `call` as soon as the connection is up. The deadline is for one round trip: a loop of several calls this function for
 * each.
 * @throws KonvergeError `redis_unavailable` if it did not succeed within `deadlineMs`, with the last connection error
 */
export async function withRedis<T>(
  redis: RedisClient,
  call: () => Promise<T>,
  deadlineMs: number = deadlines.get(redis) ?? PRODUCER_DEADLINE_MS,
): Promise<T> {
  const link = linkOf(redis);
  const startMs = performance.now();
  const deadline = Promise.withResolvers<never>();
  const giveUp = () => {
    const missing = redis.status === "ready" ? "no answer" : "no connection";
    deadline.reject(link.lastError ?? new LateAnswer(`${missing} within ${deadlineMs} ms`));
  };
  // After a stall of this process, timers run before the sockets are read: an answer that has arrived still counts.
  const timer = setTimeout(() => setImmediate(giveUp), deadlineMs);
  try {
    if (redis.status !== "ready") await Promise.race([link.becomesReady(), deadline.promise]);
    return await Promise.race([call(), deadline.promise]);
  } catch (thrown) {
    const error = ensureError(thrown);
    throw isKonvergeError(error)
      ? error
      : explainRedisError(error, RETRY_AFTER_MS, performance.now() - startMs);
  } finally {
    clearTimeout(timer);
  }
}

/** Thrown if the deadline has passed and no other cause is known. */
class LateAnswer extends Error {}

/** True if Redis answered too late or is still loading, so that a repetition may succeed soon. */
export function isLateAnswer(error: unknown): error is KonvergeError {
  if (!isKonvergeError(error) || error.code !== "redis_unavailable") return false;
  const { cause } = error;
  if (cause instanceof LateAnswer) return true;
  return cause instanceof Error && /Command timed out|ETIMEDOUT|LOADING/.test(cause.message);
}

/** Closes with QUIT within `deadlineMs`, else disconnects. */
export async function closeRedis(redis: RedisClient, deadlineMs = 500): Promise<void> {
  if (redis.status === "ready") {
    const timer = setTimeout(() => redis.disconnect(), deadlineMs);
    // A connection that fails during QUIT is closed.
    await redis.quit().catch(() => undefined);
    clearTimeout(timer);
  }
  redis.disconnect();
}

/** The state of a connection, shared by all waiting callers: callers that time out must not leave listeners behind. */
interface Link {
  /** The reason why it is not connected. */
  lastError: Error | undefined;
  becomesReady(): Promise<void>;
}

const links = new WeakMap<RedisClient, Link>();

function linkOf(redis: RedisClient): Link {
  const known = links.get(redis);
  if (known !== undefined) return known;
  let waiting: Promise<void> | undefined;
  const link: Link = {
    lastError: undefined,
    becomesReady() {
      waiting ??= nextReady(redis).finally(() => {
        waiting = undefined;
      });
      // All waiting callers may have timed out.
      waiting.catch(() => undefined);
      return waiting;
    },
  };
  redis.on("error", (error: Error) => {
    link.lastError = error;
  });
  redis.on("ready", () => {
    link.lastError = undefined;
  });
  links.set(redis, link);
  return link;
}

function nextReady(redis: RedisClient): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const closed = new Error("the connection is closed");
  if (redis.status === "end") {
    reject(closed);
    return promise;
  }
  const settle = (done: () => void) => () => {
    redis.off("ready", onReady);
    redis.off("end", onEnd);
    done();
  };
  const onReady = settle(resolve);
  const onEnd = settle(() => reject(closed));
  redis.on("ready", onReady);
  redis.on("end", onEnd);
  return promise;
}
