import { type RedisClient, runScript } from "@konverge/redis";
import type { QueueNames } from "../keys/queue-names.ts";
import { unparkScript } from "../scripts/unpark.ts";

/** Keys per step, at about 3 us each in Redis. */
const AT_ONCE = 500;

/** Time after which a worker takes over from an unresponsive process that resumes keys, in ms. */
export const RESUME_CLAIM_MS = 5_000;

/** Resumes the next parked keys, if a pause is being ended. With `claimMs` 0, only if no other process does. */
export async function unpark(
  redis: RedisClient,
  names: QueueNames,
  claimMs: number,
): Promise<{ readonly resumed: number; readonly more: boolean }> {
  const { resuming, parked, pauses, firing } = names;
  return await runScript(redis, unparkScript, {
    keys: { resuming, parked, pauses, firing },
    args: { hashes: names.keyRoot, limit: AT_ONCE, claimMs },
  });
}
