import { createHash } from "node:crypto";
import type { Redis } from "ioredis";

/** A Lua script. Its file says what KEYS, ARGV and the answer are; the clock is Redis's own (TIME). */
export interface Script {
  readonly name: string;
  readonly lua: string;
  readonly sha: string;
}

export type ScriptArgument = string | number;

const CLOCK = "redis.call('TIME')";

export function defineScript(name: string, lua: string): Script {
  if (!lua.includes(CLOCK)) throw new RangeError(`script ${name} reads no clock`);
  return { name, lua, sha: createHash("sha1").update(lua).digest("hex") };
}

/** The same text with the clock as its last two arguments, seconds and microseconds: what tests run in a real Redis. */
export function withInjectedClock({ name, lua }: Script): Script {
  return defineText(
    `${name}-with-clock`,
    lua.replaceAll(CLOCK, "{ ARGV[#ARGV - 1], ARGV[#ARGV] }"),
  );
}

function defineText(name: string, lua: string): Script {
  return { name, lua, sha: createHash("sha1").update(lua).digest("hex") };
}

/** Runs a script by its hash; a Redis that has forgotten it (restart, failover, SCRIPT FLUSH) gets the text. */
export async function runScript(
  redis: Redis,
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
