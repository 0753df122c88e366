import type { RedisClient } from "./redis-target.ts";
import { replyNumber, replyList, replyText } from "./reply.ts";
import { defineScript, readLua, runScript } from "./script.ts";

/** The server that has the key answers. */
const infoScript = defineScript({ name: "info-of", keys: ["_key"] } as const, {
  lua: readLua(new URL("info-of.lua", import.meta.url)),
  answer: replyText,
});

/** In microseconds, by the server that has the key. */
const clockScript = defineScript({ name: "clock-of", keys: ["_key"] } as const, {
  lua: readLua(new URL("clock-of.lua", import.meta.url)),
  answer: (reply) => {
    const [seconds, micros] = replyList(reply);
    return replyNumber(seconds) * 1e6 + replyNumber(micros);
  },
});

/** The answer to INFO server of the server that has `key`: on a Redis Cluster, INFO alone asks any node. */
export async function readServerInfo(redis: RedisClient, key: string): Promise<string> {
  return await runScript(redis, infoScript, { keys: { _key: key } });
}

/** The clock of the server that has `key`, in microseconds since 1970; the one that scripts with this key see. */
export async function readClockUs(redis: RedisClient, key: string): Promise<number> {
  return await runScript(redis, clockScript, { keys: { _key: key } });
}

/** The run id, which another process of Redis does not have; empty where the server does not tell. */
export function runIdOf(info: string): string {
  return /^run_id:(\S+)/m.exec(info)?.[1] ?? "";
}
