import { ensureError, KonvergeError } from "@konverge/core";
import { Redis, type RedisOptions } from "ioredis";

/** Where Redis is: a URL, or ioredis options for all that a URL cannot say (Sentinel, TLS files). */
export type RedisTarget = { readonly url: string } | RedisOptions;

/** How long a producer waits for Redis, in ms: callers of the HTTP API get their 503 within a second. */
const PRODUCER_DEADLINE_MS = 900;

const MAX_RECONNECT_MS = 1_000;

/** A connection for calls that somebody waits for: it fails at once when Redis is away. */
export function openProducer(target: RedisTarget): Redis {
  return open(target, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: PRODUCER_DEADLINE_MS,
    connectTimeout: PRODUCER_DEADLINE_MS,
  });
}

/** A worker's connection, and the copies that BullMQ makes of it to block on. */
export interface Consumer {
  readonly redis: Redis;
  /** Hangs up all of them, also one that never got through and that BullMQ would wait for. */
  disconnect(): void;
}

/** Connections for a worker: commands wait until Redis is back. */
export function openConsumer(target: RedisTarget): Consumer {
  const redis = open(target, { maxRetriesPerRequest: null });
  const connections = [redis];
  const duplicate = redis.duplicate.bind(redis);
  redis.duplicate = (override) => {
    const copy = duplicate(override);
    connections.push(copy);
    return copy;
  };
  return {
    redis,
    disconnect() {
      for (const connection of connections) connection.disconnect();
    },
  };
}

function open(target: RedisTarget, options: RedisOptions): Redis {
  const settings = {
    retryStrategy: (times: number) => Math.min(50 * times, MAX_RECONNECT_MS),
    ...options,
    // Our scripts' answers and BullMQ's are decoded in this form.
    replyMapping: "legacy" as const,
  };
  if (!("url" in target)) return new Redis({ ...target, ...settings });
  if (!/^rediss?:\/\//.test(target.url)) {
    throw new KonvergeError(
      "invalid_config",
      "the Redis URL must begin with redis:// or rediss://, for example redis://127.0.0.1:6379",
    );
  }
  return new Redis(target.url, settings);
}

/**
 * Runs `call` as soon as the connection is up.
 * @throws KonvergeError `redis_unavailable` when it did not succeed within `deadlineMs`.
 */
export async function withRedis<T>(
  redis: Redis,
  call: () => Promise<T>,
  deadlineMs: number = PRODUCER_DEADLINE_MS,
): Promise<T> {
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => deadline.reject(new Error(`no answer within ${deadlineMs} ms`)),
    deadlineMs,
  );
  try {
    if (redis.status !== "ready") await Promise.race([becomesReady(redis), deadline.promise]);
    return await Promise.race([call(), deadline.promise]);
  } catch (thrown) {
    const error = ensureError(thrown);
    if (error instanceof KonvergeError) throw error;
    throw new KonvergeError("redis_unavailable", `Redis cannot be used: ${error.message}`, {
      cause: error,
      retryAfterMs: MAX_RECONNECT_MS,
    });
  } finally {
    clearTimeout(timer);
  }
}

/** Says goodbye within `deadlineMs`, else hangs up. */
export async function closeRedis(redis: Redis, deadlineMs = 500): Promise<void> {
  if (redis.status === "ready") {
    const timer = setTimeout(() => redis.disconnect(), deadlineMs);
    // A connection that breaks while it is closed is closed.
    await redis.quit().catch(() => undefined);
    clearTimeout(timer);
  }
  redis.disconnect();
}

const waitingFor = new WeakMap<Redis, Promise<void>>();

/** One pair of listeners a connection, however many wait: callers that gave up must not leave theirs behind. */
function becomesReady(redis: Redis): Promise<void> {
  const known = waitingFor.get(redis);
  if (known !== undefined) return known;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Everyone who waits may have given up by then.
  promise.catch(() => undefined);
  const settle = (done: () => void) => () => {
    redis.off("ready", onReady);
    redis.off("end", onEnd);
    waitingFor.delete(redis);
    done();
  };
  const onReady = settle(resolve);
  const onEnd = settle(() => reject(new Error("the connection is closed")));
  if (redis.status === "end") {
    reject(new Error("the connection is closed"));
    return promise;
  }
  redis.on("ready", onReady);
  redis.on("end", onEnd);
  waitingFor.set(redis, promise);
  return promise;
}
