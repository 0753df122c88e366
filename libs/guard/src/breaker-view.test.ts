import type { BreakerMode, GateCall } from "@konverge/core";
import { expect, test } from "vitest";
import { createBreakerView } from "./breaker-view.ts";

const CALL: GateCall = { verb: "get", resource: "pods", priority: "event" };

function retryAfterMs(mode: BreakerMode, waitMs: number, random: number): number | undefined {
  const view = createBreakerView({
    probe: () => Promise.resolve(),
    onBreaker: () => undefined,
    onHealth: () => undefined,
    clock: () => 0,
    random: () => random,
    schedule: () => () => undefined,
    live: () => 1,
  });
  view.learn({ mode, generation: 2, waitMs });
  const refused = view.refuse(CALL);
  view.stop();
  return refused?.retryAfterMs;
}

test.each([0, 1])(
  "P6: defers calls to an isolated server by at most 2 s, so that they resume soon after the reset (random %d)",
  (random) => {
    expect(retryAfterMs("isolated", 30_000, random)).toBeLessThanOrEqual(2_000);
  },
);

test.each([0, 1])("defers calls until the breaker can close (random %d)", (random) => {
  expect(retryAfterMs("open", 8_000, random)).toBeGreaterThanOrEqual(8_000);
});
