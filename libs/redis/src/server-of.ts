import { clockOfScript } from "./clock-of.ts";
import { infoOfScript } from "./info-of.ts";
import type { RedisClient } from "./redis-target.ts";
import { runScript } from "./script.ts";

/** The answer to INFO server of the server that has `key`: on a Redis Cluster, INFO alone asks any node. */
export async function readServerInfo(redis: RedisClient, key: string): Promise<string> {
  return await runScript(redis, infoOfScript, { keys: { _key: key } });
}

/** The clock of the server that has `key`, in microseconds since 1970; the one that scripts with this key see. */
export async function readClockUs(redis: RedisClient, key: string): Promise<number> {
  return await runScript(redis, clockOfScript, { keys: { _key: key } });
}

/** The run id, which another process of Redis does not have; empty where the server does not tell. */
export function runIdOf(info: string): string {
  return /^run_id:(\S+)/m.exec(info)?.[1] ?? "";
}
