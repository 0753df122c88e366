import { clockOfScript } from "./clock-of.ts";
import { infoOfScript } from "./info-of.ts";
import type { RedisClient } from "./redis-target.ts";
import { runScript } from "./script.ts";

/** Returns INFO server and INFO replication of the server that has `key`. On a Redis Cluster, a plain INFO reads any node. */
export async function readServerInfo(redis: RedisClient, key: string): Promise<string> {
  return await runScript(redis, infoOfScript, { keys: { _key: key } });
}

/** Returns the clock of the server that has `key`, in microseconds since 1970. Scripts with this key use the same clock. */
export async function readClockUs(redis: RedisClient, key: string): Promise<number> {
  return await runScript(redis, clockOfScript, { keys: { _key: key } });
}

/**
 * Returns the run ID, which is unique per process of Redis. A server that hides it may report the replication ID, which changes
 * with each failover. Empty if it reports neither.
 */
export function runIdOf(info: string): string {
  return /^(?:run_id|master_replid):(\S+)/m.exec(info)?.[1] ?? "";
}
