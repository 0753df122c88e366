import { checkRedisVersion, KonvergeError } from "@konverge/core";
import { Redis, type RedisOptions } from "ioredis";

/** Where Redis is: a URL, or ioredis options for all that a URL cannot say (Sentinel, TLS files). */
export type RedisTarget = { readonly url: string } | RedisOptions;

/** An ask that takes longer is worth nothing: its tokens are dead. */
const COMMAND_MS = 1_000;
const MAX_RECONNECT_MS = 1_000;

/** A connection that fails at once when Redis is away, and never sends a command twice. @throws KonvergeError `invalid_config` */
export function connectRedis(target: RedisTarget): Redis {
  const settings = {
    retryStrategy: (times: number) => Math.min(50 * times, MAX_RECONNECT_MS),
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_MS,
    connectTimeout: COMMAND_MS * 5,
    replyMapping: "legacy" as const,
  };
  if (!("url" in target)) return new Redis({ ...target, ...settings });
  if (!/^(rediss?|unix):\/\//.test(target.url)) {
    throw new KonvergeError(
      "invalid_config",
      "the Redis URL must begin with redis:// or rediss://, for example redis://127.0.0.1:6379",
    );
  }
  return new Redis(target.url, settings);
}

/**
 * The run id, which another process of Redis does not have; empty where the server does not tell.
 * @throws KonvergeError `redis_unsuitable` for a Redis that is too old
 */
export async function readRunId(redis: Redis): Promise<string> {
  const info = await redis.info("server");
  checkRedisVersion(info);
  return /^run_id:(\S+)/m.exec(info)?.[1] ?? "";
}
