/** Tokens that were used at one moment, in ms of true time. */
export interface Use {
  readonly atMs: number;
  readonly tokens: number;
}

/**
 * How far the uses of any window go beyond `ratePerSecond` times its length, in tokens: at most the burst, if P5 holds.
 * One pass: a window that ends here begins either here or where the best one that ended before began.
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
