import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { simulateBrownout, type BrownoutOptions } from "./brownout.ts";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";

const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));
const isLong = process.env["KONVERGE_TEST_LONG"] === "1";
const fleet = isLong ? { workers: 1_000, keys: 100_000 } : { workers: 50, keys: 5_000 };

const simulate = (options: Pick<BrownoutOptions, "policy" | "faultSeats">) =>
  simulateBrownout({
    ...fleet,
    ...options,
    eventsPerSecond: 140,
    rate: 180,
    burst: 60,
    fromMs: 15_000,
    toMs: 35_000,
    endMs: 75_000,
    random: seededRandom(seed),
  });

test.each([
  ["a brownout", 2],
  ["an outage", 0],
])(
  `P5, P6: a fleet lives through %s that jittered retries alone never recover from (seed ${seed})`,
  { timeout: 120_000 },
  async (_what, faultSeats) => {
    const alone = await simulate({ policy: "jitter", faultSeats });
    const guarded = await simulate({ policy: "guard", faultSeats });
    expect(alone.recoveredMs, "what the fault does without a guard").toBeUndefined();
    expect(guarded.recoveredMs).toBeLessThanOrEqual(20_000);
    expect(guarded.sentDuring).toBeLessThanOrEqual(0.05 * alone.sentDuring);
    // No second exceeds rate plus burst; after the start, no burst is left.
    expect(guarded.peakPerSecond).toBeLessThanOrEqual(180 + 60);
    // Only events of the last moments are pending at the end.
    expect(guarded.pendingKeys).toBeLessThanOrEqual(3 * 140);
  },
);
