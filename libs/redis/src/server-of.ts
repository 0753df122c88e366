import type { RedisClient } from "./redis-target.ts";
import { defineScript, runScript, type Script } from "./script.ts";

/** KEYS: 1 a key. Answer: INFO server, of the server that has it. */
const infoScript: Script = defineScript("info-of", String.raw`return redis.call('INFO', 'server')`);

/** KEYS: 1 a key. Answer: { seconds, microseconds } by the server that has it. */
const clockScript: Script = defineScript("clock-of", String.raw`return redis.call('TIME')`);

/** The answer to INFO server of the server that has `key`: on a Redis Cluster, INFO alone asks any node. */
export async function readServerInfo(redis: RedisClient, key: string): Promise<string> {
  return String(await runScript(redis, infoScript, [key], []));
}

/** The clock of the server that has `key`, in microseconds since 1970; the one that scripts with this key see. */
export async function readClockUs(redis: RedisClient, key: string): Promise<number> {
  const [seconds, micros] = (await runScript(redis, clockScript, [key], [])) as [string, string];
  return Number(seconds) * 1e6 + Number(micros);
}

/** The run id, which another process of Redis does not have; empty where the server does not tell. */
export function runIdOf(info: string): string {
  return /^run_id:(\S+)/m.exec(info)?.[1] ?? "";
}
