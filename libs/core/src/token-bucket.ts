/** A token bucket (GCRA). Its state is one number, which is cheap to share. */
export interface BucketLimits {
  /** Long-term tokens per second. */
  readonly ratePerSecond: number;
  /** Tokens that are available immediately after a pause. */
  readonly burst: number;
}

/**
 * Takes one token at `nowMs`. `tatMs` is the theoretical arrival time, when the bucket is full again. Returns the new `tatMs`
 * and the wait in ms. In every window T, at most rate * T + burst callers pass if all observe their waits.
 */
export function takeToken(
  limits: BucketLimits,
  tatMs: number,
  nowMs: number,
): { readonly tatMs: number; readonly waitMs: number } {
  const intervalMs = 1_000 / limits.ratePerSecond;
  const nextTatMs = Math.max(tatMs, nowMs) + intervalMs;
  return { tatMs: nextTatMs, waitMs: Math.max(0, nextTatMs - limits.burst * intervalMs - nowMs) };
}
