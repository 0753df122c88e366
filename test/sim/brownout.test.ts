import { expect, test } from "vitest";
import { simulateBrownout, type BrownoutOptions } from "./brownout.ts";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const fleet = isLongRun ? { workers: 1_000, keys: 100_000 } : { workers: 50, keys: 5_000 };

const load = { eventsPerSecond: 140, rate: 180, burst: 60, fromMs: 15_000, toMs: 35_000 };
/** The last failing probe has its deadline of 1 s; then the breaker is open for at most 5 s and a jitter of 25 %. */
const LATEST_CLOSING_MS = load.toMs + 1_000 + 1.25 * 5_000 + 1_000;

const RECOVERED_MS = 14_000;

/**
 * The time at which the backlog of the latest closing is gone. Events of a key that waits coalesce, and the rate rises by a tenth
 * per second from a fifth. The events of a run deviate by about 100 of 10,000, which takes 2.5 s at the spare rate of 40/s.
 */
function drainedMs(): number {
  let waiting = 0;
  for (let ms = load.fromMs; ; ms += 100) {
    const openForS = (ms - LATEST_CLOSING_MS) / 1_000;
    const rate = openForS < 0 ? 0 : load.rate * Math.min(1, 0.2 + 0.1 * Math.max(0, openForS - 1));
    waiting += (load.eventsPerSecond * (1 - waiting / fleet.keys) - rate) / 10;
    if (openForS > 0 && waiting <= 0) return ms + 4 * 2_500;
  }
}

const simulate = (options: Pick<BrownoutOptions, "policy" | "faultSeats">) =>
  simulateBrownout({
    ...fleet,
    ...load,
    ...options,
    endMs: drainedMs(),
    random: seededRandom(seed),
  });

test.each([
  ["a brownout", 2],
  ["an outage", 0],
])(
  `P5, P6: a fleet recovers from %s long before jittered retries alone would (seed ${seed})`,
  async (_what, faultSeats) => {
    const alone = await simulate({ policy: "jitter", faultSeats });
    const guarded = await simulate({ policy: "guard", faultSeats });
    // 8.3 s until the latest closing, and 5.6 s until the rate is at two thirds, in whole seconds.
    expect(guarded.recoveredMs).toBeLessThanOrEqual(RECOVERED_MS);
    // The overload sustains itself. In one run of 200 to 400, chance ends it after half a minute or more.
    expect(alone.recoveredMs ?? Infinity).toBeGreaterThan(RECOVERED_MS);
    // In a large fleet it takes up to 10 s until a majority of the workers has failed.
    expect(guarded.sentDuring).toBeLessThanOrEqual((isLongRun ? 0.12 : 0.05) * alone.sentDuring);
    // No second exceeds rate plus burst; after the start, no burst is left.
    expect(guarded.peakPerSecond).toBeLessThanOrEqual(load.rate + load.burst);
    // Only events of the last second are pending: about 14 calls are under way.
    expect(guarded.pendingKeys).toBeLessThanOrEqual(load.eventsPerSecond);
  },
);
