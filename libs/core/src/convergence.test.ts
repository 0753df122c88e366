import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  CONVERGENCE_CAUSES,
  divideConvergence,
  type ConvergenceCause,
  type TimeSpan,
} from "./convergence.ts";

const BEGUN_MS = 1_700_000_000_000;
const ms = fc.nat(1_000);

/** The wait of a key before its last attempt, ms by ms, as the causes that hold at each of them. */
const wait = fc.array(
  fc.record({ ms: fc.nat(50), isPaused: fc.boolean(), isOutage: fc.boolean() }),
  { maxLength: 12 },
);
const life = fc.record({
  wait,
  failures: fc.nat(2),
  conflicts: fc.nat(2),
  durationMs: ms,
  rateLimitMs: ms,
  laneMs: ms,
  conflictMs: ms,
  /** Spans from before the request, or after the start: of another life. */
  foreign: fc.record({ beforeMs: ms, afterMs: ms }),
});

type Life = typeof life extends fc.Arbitrary<infer Value> ? Value : never;

function attemptOf({ wait: stretches, foreign, ...given }: Life) {
  const pauses: TimeSpan[] = [];
  const outages: TimeSpan[] = [];
  let atMs = BEGUN_MS;
  for (const { ms: lastsMs, isPaused, isOutage } of stretches) {
    const span = { fromMs: atMs, toMs: atMs + lastsMs };
    if (isPaused) pauses.push(span);
    if (isOutage) outages.push(span);
    atMs = span.toMs;
  }
  const before = { fromMs: BEGUN_MS - foreign.beforeMs, toMs: BEGUN_MS };
  const after = { fromMs: atMs, toMs: atMs + foreign.afterMs };
  const { failures, conflicts, durationMs, ...waits } = given;
  return {
    failures,
    conflicts,
    startedAtMs: atMs,
    durationMs,
    waits: { ...waits, queueMs: atMs - BEGUN_MS },
    pauses: [after, ...pauses, before],
    // Two guards may see the same outage.
    outages: [...outages, before, ...outages],
  };
}

test("the parts of random lives are not negative, and their sum is the whole time", () => {
  fc.assert(
    fc.property(life, (given) => {
      const attempt = attemptOf(given);
      const parts = divideConvergence(attempt);
      expect(Object.keys(parts).toSorted()).toEqual([...CONVERGENCE_CAUSES].toSorted());
      const values = Object.values(parts);
      expect(Math.min(...values)).toBeGreaterThanOrEqual(0);
      const sum = values.reduce((all, each) => all + each, 0);
      expect(sum).toBe(attempt.waits.queueMs + attempt.durationMs);
    }),
  );
});

test("pauses and outages of random lives have exactly their time", () => {
  const sumOf = (given: Life, isCounted: (stretch: Life["wait"][number]) => boolean) =>
    given.wait.filter(isCounted).reduce((sum, stretch) => sum + stretch.ms, 0);
  fc.assert(
    fc.property(life, (given) => {
      const { pause, outage } = divideConvergence(attemptOf(given));
      expect({ pause, outage }).toEqual({
        pause: sumOf(given, ({ isPaused }) => isPaused),
        outage: sumOf(given, ({ isPaused, isOutage }) => isOutage && !isPaused),
      });
    }),
  );
});

test("every cause is reached, and each can be the largest", () => {
  const reached = new Set<ConvergenceCause>();
  for (const given of fc.sample(life, { numRuns: 2_000, seed: 7 })) {
    const parts = divideConvergence(attemptOf(given));
    const most = Math.max(...Object.values(parts));
    for (const cause of CONVERGENCE_CAUSES) {
      if (most > 0 && parts[cause] === most) reached.add(cause);
    }
  }
  expect([...reached].toSorted()).toEqual([...CONVERGENCE_CAUSES].toSorted());
});

test("the time before the attempt has the cause of its last predecessor", () => {
  const waits = { queueMs: 900, rateLimitMs: 20, laneMs: 10, conflictMs: 30 };
  const startedAtMs = BEGUN_MS + 900;
  const none = { pauses: [], outages: [] };
  const first = { failures: 0, conflicts: 0, startedAtMs, durationMs: 100, waits, ...none };
  const rest = { pause: 0, outage: 0, token: 20, lane: 10, handler: 40 };
  expect(divideConvergence(first)).toEqual({ queue: 900, retry: 0, contention: 30, ...rest });
  expect(divideConvergence({ ...first, failures: 2 })).toMatchObject({ queue: 0, retry: 900 });
  expect(divideConvergence({ ...first, conflicts: 1 })).toMatchObject({
    queue: 0,
    contention: 930,
  });
});
