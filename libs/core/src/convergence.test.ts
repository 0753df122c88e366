import * as fc from "fast-check";
import { expect, test } from "vitest";
import { divideConvergence } from "./convergence.ts";

const ms = fc.nat(100_000);
const succeeded = fc.record({
  failures: fc.nat(3),
  conflicts: fc.nat(3),
  durationMs: ms,
  waits: fc.record({ queueMs: ms, rateLimitMs: ms, laneMs: ms, conflictMs: ms }),
});

test("the parts are not negative, and their sum is the time from the request to the end", () => {
  fc.assert(
    fc.property(succeeded, (attempt) => {
      const parts = Object.values(divideConvergence(attempt));
      expect(Math.min(...parts)).toBeGreaterThanOrEqual(0);
      const sum = parts.reduce((all, each) => all + each, 0);
      expect(sum).toBe(attempt.waits.queueMs + attempt.durationMs);
    }),
  );
});

test("the time before the attempt has the cause of its last predecessor", () => {
  const waits = { queueMs: 900, rateLimitMs: 20, laneMs: 10, conflictMs: 30 };
  const first = { failures: 0, conflicts: 0, durationMs: 100, waits };
  const rest = { token: 20, lane: 10, handler: 40 };
  expect(divideConvergence(first)).toEqual({ queue: 900, retry: 0, contention: 30, ...rest });
  expect(divideConvergence({ ...first, failures: 2 })).toMatchObject({ queue: 0, retry: 900 });
  expect(divideConvergence({ ...first, conflicts: 1 })).toMatchObject({
    queue: 0,
    contention: 930,
  });
});
