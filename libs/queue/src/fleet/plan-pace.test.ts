import * as fc from "fast-check";
import { expect, test } from "vitest";
import { PACE_MS, PlanPace, QUIET_MS } from "./plan-pace.ts";

const moments = fc.array(
  fc.record({
    afterMs: fc.integer({ min: 0, max: 3 * PACE_MS }),
    ends: fc.boolean(),
    active: fc.integer({ min: 0, max: 1 }),
  }),
  { maxLength: 200 },
);

test("starts plans at least PACE_MS apart while attempts run or end, and without a pause otherwise", () => {
  fc.assert(
    fc.property(moments, (steps) => {
      let [nowMs, ended, running, beganMs, busyUntilMs] = [0, 0, 0, -Infinity, -Infinity];
      let endsSince = false;
      const pace = new PlanPace(
        () => ({ active: running, ended }),
        () => nowMs,
      );
      for (const { afterMs, ends, active } of steps) {
        nowMs += afterMs;
        running = active;
        if (ends) ended += 1;
        endsSince ||= ends;
        const isPaced = beganMs < busyUntilMs;
        expect(pace.restMs() === 0).toBe(!isPaced || nowMs - beganMs >= PACE_MS);
        if (pace.restMs() > 0) continue;
        pace.began();
        beganMs = nowMs;
        if (endsSince || active > 0) busyUntilMs = nowMs + QUIET_MS;
        endsSince = false;
      }
    }),
  );
});
