/** Tokens used at a moment, in ms of true time. */
export interface Use {
  readonly atMs: number;
  readonly tokens: number;
}

/**
 * Returns the largest excess of a window's uses over `ratePerSecond` times its length, in tokens: at most the burst if P5 holds.
 * One pass: the best window that ends here begins here, or at the start of the best window before.
 */
export function largestExcess(uses: readonly Use[], ratePerSecond: number): number {
  let best = 0;
  let open = 0;
  let lastMs = -Infinity;
  for (const { atMs, tokens } of uses.toSorted((a, b) => a.atMs - b.atMs)) {
    const drained = lastMs === -Infinity ? 0 : ((atMs - lastMs) * ratePerSecond) / 1_000;
    open = Math.max(0, open - drained) + tokens;
    best = Math.max(best, open);
    lastMs = atMs;
  }
  return best;
}
