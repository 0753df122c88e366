import { createHash } from "node:crypto";
import type { RedisClient } from "./redis-target.ts";

/** A Lua script. Its file says what KEYS, ARGV and the answer are; the clock is Redis's own (TIME). */
export interface Script {
  readonly name: string;
  readonly lua: string;
  readonly sha: string;
}

export type ScriptArgument = string | number;

export function defineScript(name: string, lua: string): Script {
  return { name, lua, sha: createHash("sha1").update(lua).digest("hex") };
}

/**
 * Runs a script by its hash; a Redis that has forgotten it (restart, failover, another node of a cluster) gets the text.
 * @param keys at least one: on a Redis Cluster it decides which node runs the script
 * @throws what Redis answers, naming the script.
 */
export async function runScript(
  redis: RedisClient,
  script: Script,
  keys: readonly string[],
  args: readonly ScriptArgument[],
): Promise<unknown> {
  try {
    return await redis.evalsha(script.sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
    return await redis.eval(script.lua, keys.length, ...keys, ...args);
  }
}
