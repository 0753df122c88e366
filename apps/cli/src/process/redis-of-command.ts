import type { RedisTarget } from "@konverge/redis";

/** Longer than for callers of the HTTP API: a command first starts its process and its connection. */
const COMMAND_DEADLINE_MS = 3_000;

/** Returns the Redis of a command that uses it without the HTTP API. */
export function redisOfCommand(url: string): RedisTarget {
  return { url, deadlineMs: COMMAND_DEADLINE_MS };
}
