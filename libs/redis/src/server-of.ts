import { clockOfScript } from "./clock-of.ts";
import { infoOfScript } from "./info-of.ts";
import type { RedisClient } from "./redis-target.ts";
import { runScript } from "./script.ts";

/** Returns INFO server of the server that has `key`. On a Redis Cluster, a plain INFO reads any node. */
export async function readServerInfo(redis: RedisClient, key: string): Promise<string> {
  return await runScript(redis, infoOfScript, { keys: { _key: key } });
}

/** Returns the clock of the server that has `key`, in microseconds since 1970. Scripts with this key use the same clock. */
export async function readClockUs(redis: RedisClient, key: string): Promise<number> {
  return await runScript(redis, clockOfScript, { keys: { _key: key } });
}

/** Returns the run id, which is unique per process of Redis; empty if the server does not report it. */
export function runIdOf(info: string): string {
  return /^run_id:(\S+)/m.exec(info)?.[1] ?? "";
}
