import { ensureError, type BackoffPolicy } from "@konverge/core";

/** Shortest interval between reads of the number of waiting keys, in ms. */
const READ_EVERY_MS = 1_000;
/** Longest delay of a key, regardless of the number of failing keys, in ms. */
const LONGEST_MS = 1_000_000;

export interface StretchedBackoffOptions {
  readonly policy: BackoffPolicy;
  /** Limit for the retries of all keys, per second. */
  readonly perSecond: number;
  /** Returns the number of keys that wait for a retry. */
  readonly countWaiting: () => Promise<number>;
  readonly onError: (error: Error) => void;
  /** Monotonic time in ms. */
  readonly clock?: () => number;
}

/**
 * Returns a backoff whose longest delay grows with the number of waiting keys, so that their retries stay below `perSecond`;
 * with full jitter, retries are half the longest delay apart on average. A single failing key keeps its own limit. An outage
 * that affects all keys must not use up the rate of working keys. Uses the last number that was read, without waiting.
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
