import { checkRedisVersion, KonvergeError } from "@konverge/core";
import {
  closeRedis,
  openProducer,
  primariesOf,
  withRedis,
  type RedisTarget,
} from "@konverge/redis";
import { Cluster } from "ioredis";

/** More than an answer's way, in ms. */
const MAX_CLOCK_SKEW_MS = 2_000;

export interface RedisFacts {
  readonly version: string;
  /** What works but may surprise, for the log: one sentence each, with the cure. */
  readonly warnings: readonly string[];
}

/**
 * Looks whether Redis can keep what the queue promises.
 * @throws KonvergeError `redis_unsuitable` when it is too old, may evict keys, or is a Redis Cluster that the URL calls one server
 * @throws KonvergeError `redis_unavailable`
 */
export async function checkRedis(target: RedisTarget): Promise<RedisFacts> {
  const redis = openProducer(target);
  // Failures reach the caller through withRedis; without a listener they would be thrown once more.
  redis.on("error", () => undefined);
  try {
    const isCluster = redis instanceof Cluster;
    const infos = await withRedis(redis, () =>
      Promise.all(primariesOf(redis).map((node) => node.info())),
    );
    const [first, ...others] = infos.map((info) => judgeRedis(info, isCluster));
    if (first === undefined) {
      throw new KonvergeError(
        "redis_unavailable",
        "the Redis Cluster names no primary; wait for it",
      );
    }
    const warnings = [first, ...others].flatMap((facts) => facts.warnings);
    return { version: first.version, warnings: [...new Set(warnings)] };
  } finally {
    await closeRedis(redis);
  }
}

/**
 * The judgement over the answer of INFO at `nowMs` of our own clock, by a server that is spoken to alone or as a node of a
 * Redis Cluster.
 * @throws KonvergeError `redis_unsuitable`
 */
export function judgeRedis(
  info: string,
  isCluster = false,
  nowMs: number = Date.now(),
): RedisFacts {
  const fields = new Map(
    info.split(/\r?\n/).map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1)];
    }),
  );
  const version = checkRedisVersion(info);
  const policy = fields.get("maxmemory_policy") ?? "noeviction";
  if (policy !== "noeviction") {
    throw new KonvergeError(
      "redis_unsuitable",
      `Redis may evict keys (maxmemory-policy ${policy}), which would lose requests; set maxmemory-policy noeviction`,
    );
  }
  if (fields.get("redis_mode") === "cluster" && !isCluster) {
    throw new KonvergeError(
      "redis_unsuitable",
      "Redis is a node of a Redis Cluster, but its URL names one server; write redis+cluster://host:port,host:port",
    );
  }
  const warnings: string[] = [];
  if (fields.get("aof_enabled") === "0") {
    warnings.push(
      "Redis has its append-only file off: a restart forgets requests made since the last snapshot; set appendonly yes",
    );
  }
  // Redis 6.2 does not tell its time here.
  const aheadMs = nowMs - Number(fields.get("server_time_usec") ?? nowMs * 1_000) / 1_000;
  if (Math.abs(aheadMs) > MAX_CLOCK_SKEW_MS) {
    const seconds = Math.round(Math.abs(aheadMs) / 1_000);
    warnings.push(
      `the clock of this machine is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} that of Redis: backoffs end too early or too late by as much; synchronise both by NTP`,
    );
  }
  return { version, warnings };
}
