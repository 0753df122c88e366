/** A token bucket by GCRA: the state is one number, so it is cheap to share and exact to reason about. */
export interface BucketLimits {
  /** Tokens per second, in the long run. */
  readonly ratePerSecond: number;
  /** Tokens that may be taken at once after a pause. */
  readonly burst: number;
}

/**
 * Takes one token at `nowMs`. `tatMs` is the theoretical arrival time: when the bucket will be full again. Returns the
 * new `tatMs` and for how long the taker must wait, in ms. Over every window T, takers that wait as told number at
 * most rate * T + burst.
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
