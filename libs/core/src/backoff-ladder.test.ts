import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  climb,
  conflictLadder,
  defaultBackoff,
  defaultRetry,
  defineLadder,
  failureLadder,
  rejectedLadder,
  type Jitter,
  type Ladder,
} from "./backoff-ladder.ts";

const jitters: fc.Arbitrary<Jitter> = fc.oneof(
  fc.constantFrom<Jitter>({ kind: "none" }, { kind: "equal" }, { kind: "full" }),
  fc
    .double({ min: 0, max: 5, noNaN: true })
    .map((share): Jitter => ({ kind: "proportional", share })),
);
const ladders: fc.Arbitrary<Ladder> = fc
  .record({
    baseMs: fc.double({ min: 0.001, max: 10_000, noNaN: true }),
    factor: fc.double({ min: 1, max: 100, noNaN: true }),
    head: fc.double({ min: 0, max: 1e9, noNaN: true }),
    steps: fc.oneof(fc.integer({ min: 0, max: 100 }), fc.constant(Infinity)),
    jitter: jitters,
  })
  .map(({ head, ...rest }) => defineLadder({ ...rest, capMs: rest.baseMs + head }));
const retries = fc.oneof(
  fc.integer({ min: 0, max: 100 }),
  fc.constantFrom(1_000, 1_000_000, Number.MAX_SAFE_INTEGER),
);
const draws = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

/** Where a delay may lie, by the jitter's definition. */
function range(delayMs: number, jitter: Jitter): readonly [number, number] {
  switch (jitter.kind) {
    case "none":
      return [delayMs, delayMs];
    case "equal":
      return [delayMs / 2, delayMs];
    case "full":
      return [0, delayMs];
    case "proportional":
      return [delayMs, delayMs * (1 + jitter.share)];
  }
}
function wait(ladder: Ladder, retry: number, random?: () => number): number {
  const step = climb(ladder, retry, random);
  if (step.kind !== "wait") throw new Error(`exhausted at ${retry}`);
  return step.afterMs;
}
/** The mean over an even grid of draws: exact for a linear spread, so no test by luck. */
function mean(ladder: Ladder, retry: number): number {
  const samples = Array.from({ length: 1_000 }, (_, i) =>
    wait(ladder, retry, () => (i + 0.5) / 1_000),
  );
  return samples.reduce((sum, ms) => sum + ms, 0) / samples.length;
}

test("every delay lies in its jitter's range around min(cap, base * factor^n), without overflow", () => {
  fc.assert(
    fc.property(ladders, retries, draws, (ladder, retry, draw) => {
      const step = climb(ladder, retry, () => draw);
      if (retry >= ladder.steps) {
        expect(step).toEqual({ kind: "exhausted", steps: ladder.steps });
        return;
      }
      const delayMs = Math.min(ladder.capMs, ladder.baseMs * ladder.factor ** retry);
      const [low, high] = range(delayMs, ladder.jitter);
      if (step.kind !== "wait") throw new Error("exhausted too early");
      expect(Number.isFinite(step.afterMs)).toBe(true);
      expect(step.afterMs).toBeGreaterThanOrEqual(low * (1 - 1e-9));
      expect(step.afterMs).toBeLessThanOrEqual(high * (1 + 1e-9));
    }),
  );
});

test("without jitter delays never shrink and stay at the cap", () => {
  const ladder: Ladder = { ...conflictLadder, jitter: { kind: "none" } };
  const delays = [0, 1, 2, 6, 7, 49, 1e6].map((retry) => wait(ladder, retry));
  expect(delays).toEqual([50, 100, 200, 3_200, 5_000, 5_000, 5_000]);
});

test.each<[Jitter, number]>([
  [{ kind: "none" }, 400],
  [{ kind: "equal" }, 300],
  [{ kind: "full" }, 200],
  [{ kind: "proportional", share: 0.1 }, 420],
])("the mean of %j is where its definition puts it", (jitter, expected) => {
  const ladder: Ladder = { baseMs: 100, factor: 2, capMs: 10_000, steps: 9, jitter };
  expect(mean(ladder, 2)).toBeCloseTo(expected, 6);
});

test("the same number gives the same range in another process: no state is kept", () => {
  const half = () => 0.5;
  expect(wait(failureLadder, 3, half)).toBe(wait(failureLadder, 3, half));
  expect(wait(failureLadder, 0, half)).toBe(125);
});

test("says exhausted instead of waiting for ever", () => {
  const ladder: Ladder = { ...conflictLadder, steps: 3 };
  expect(climb(ladder, 2).kind).toBe("wait");
  expect(climb(ladder, 3)).toEqual({ kind: "exhausted", steps: 3 });
  expect(climb({ ...ladder, steps: 0 }, 0)).toEqual({ kind: "exhausted", steps: 0 });
});

test("the ladders of the queue never end", () => {
  for (const ladder of [conflictLadder, failureLadder, rejectedLadder]) {
    expect(wait(ladder, 1_000_000, () => 0.999)).toBeLessThanOrEqual(ladder.capMs);
    expect(defineLadder(ladder)).toBe(ladder);
  }
});

test("defaultRetry is client-go's: four sleeps of [10, 11) ms, under 44 ms in total", () => {
  const low = [0, 1, 2, 3].map((retry) => wait(defaultRetry, retry, () => 0));
  const high = [0, 1, 2, 3].map((retry) => wait(defaultRetry, retry, () => 0.999_999));
  expect(low).toEqual([10, 10, 10, 10]);
  expect(Math.max(...high)).toBeLessThan(11);
  expect(climb(defaultRetry, 4).kind).toBe("exhausted");
});

test("defaultBackoff is client-go's: sleeps of [10, 11), [50, 55) and [250, 275) ms", () => {
  expect([0, 1, 2].map((retry) => wait(defaultBackoff, retry, () => 0))).toEqual([10, 50, 250]);
  const high = [0, 1, 2].map((retry) => wait(defaultBackoff, retry, () => 0.999_999));
  [11, 55, 275].forEach((limit, retry) => expect(high[retry]).toBeLessThan(limit));
  expect(climb(defaultBackoff, 3).kind).toBe("exhausted");
});

test.each<[string, Partial<Ladder>]>([
  ["a base of 0", { baseMs: 0 }],
  ["a base that is no number", { baseMs: NaN }],
  ["a factor below 1", { factor: 0.5 }],
  ["a cap below the base", { capMs: 49 }],
  ["an endless cap", { capMs: Infinity }],
  ["negative steps", { steps: -1 }],
  ["steps that are no number", { steps: NaN }],
  ["a negative share", { jitter: { kind: "proportional", share: -0.1 } }],
  ["an endless share", { jitter: { kind: "proportional", share: Infinity } }],
])("refuses %s at construction", (_what, wrong) => {
  expect(() => defineLadder({ ...conflictLadder, ...wrong })).toThrow(RangeError);
});
