import type { RedisClient } from "@konverge/redis";
import { RESTORE_TOLERANCE_MS, readRestoreState, tokensRestoreKey } from "./restore-state.ts";

/**
 * Returns a function that reports whether the tokens are held: a worker has detected a restore of Redis, or the data is older than
 * this process has seen, and no worker has noticed it yet.
 */
export function createTokensFence(
  redis: RedisClient,
  prefix: string,
  toleranceMs: number = RESTORE_TOLERANCE_MS,
): () => Promise<boolean> {
  let knownMs = 0;
  return async () => {
    const { held, progressMs } = await readRestoreState(redis, tokensRestoreKey(prefix));
    // Without workers, no progress is stored.
    if (progressMs !== undefined && progressMs < knownMs - toleranceMs) return true;
    knownMs = Math.max(knownMs, progressMs ?? 0);
    return held.length > 0;
  };
}
