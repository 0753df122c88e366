import { ensureError, type BackoffPolicy } from "@konverge/core";

/** Most often that the number of waiting keys is read, and only while something fails. */
const READ_EVERY_MS = 1_000;
/** However many keys fail, each is tried again at least so often, in ms. */
const LONGEST_MS = 1_000_000;

export interface StretchedBackoffOptions {
  readonly policy: BackoffPolicy;
  /** What the retries of all keys may come to, per second. */
  readonly perSecond: number;
  /** Keys that wait for a retry now. */
  readonly countWaiting: () => Promise<number>;
  readonly onError: (error: Error) => void;
  /** Monotonic time in ms. */
  readonly clock?: () => number;
}

/**
 * A ladder whose cap follows the fleet: with `n` keys that wait it is at least as long as keeps their retries, which come
 * half a cap after each other on average (full jitter), below `perSecond`. One key that fails is tried again within its own
 * cap; an outage of what all keys need must not spend the rate of those that work. Answers at once, by what was read last.
 */
export function createStretchedBackoff(options: StretchedBackoffOptions): () => BackoffPolicy {
  const { policy, perSecond, countWaiting, onError, clock = () => performance.now() } = options;
  let waiting = 0;
  let readAtMs = -Infinity;
  const read = async () => {
    try {
      waiting = await countWaiting();
    } catch (error) {
      onError(ensureError(error));
    }
  };
  return () => {
    if (clock() - readAtMs >= READ_EVERY_MS) {
      readAtMs = clock();
      void read();
    }
    const neededMs = Math.min(LONGEST_MS, (2_000 * waiting) / perSecond);
    return neededMs > policy.capMs ? { ...policy, capMs: neededMs } : policy;
  };
}
