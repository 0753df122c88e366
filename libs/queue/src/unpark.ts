import { type RedisClient, runScript } from "@konverge/redis";
import type { QueueNames } from "./queue-names.ts";
import { unparkScript } from "./scripts/unpark.ts";

/** Keys per step; each takes Redis some 3 us. */
const AT_ONCE = 500;

/** Takes a step in resuming parked keys; nothing when nothing is being resumed. */
export async function unpark(
  redis: RedisClient,
  names: QueueNames,
): Promise<{ readonly resumed: number; readonly more: boolean }> {
  const [resumed, more] = (await runScript(
    redis,
    unparkScript,
    [names.resuming, names.parked, names.pauses, names.timers],
    [AT_ONCE],
  )) as [number, number];
  return { resumed, more: more === 1 };
}
