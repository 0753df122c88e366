import { type RedisClient, runScript } from "@konverge/redis";
import type { QueueNames } from "../keys/queue-names.ts";
import { unparkScript } from "../scripts/unpark.ts";

/** Keys per step; each takes Redis some 3 us. */
const AT_ONCE = 500;

/** How long the process that resumes may say nothing before a worker does its work, in ms. */
export const RESUME_CLAIM_MS = 5_000;

/** Takes a step in resuming parked keys, with `claimMs` 0 only where nobody else does; nothing when nothing is being resumed. */
export async function unpark(
  redis: RedisClient,
  names: QueueNames,
  claimMs: number,
): Promise<{ readonly resumed: number; readonly more: boolean }> {
  const { resuming, parked, pauses, timers } = names;
  return await runScript(redis, unparkScript, {
    keys: { resuming, parked, pauses, timers },
    args: { limit: AT_ONCE, claimMs },
  });
}
