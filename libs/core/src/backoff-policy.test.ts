import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  nextDelay,
  conflictBackoff,
  defaultBackoff,
  defaultRetry,
  defineBackoff,
  failureBackoff,
  rejectedBackoff,
  type Jitter,
  type BackoffPolicy,
} from "./backoff-policy.ts";

const jitters: fc.Arbitrary<Jitter> = fc.oneof(
  fc.constantFrom<Jitter>({ kind: "none" }, { kind: "equal" }, { kind: "full" }),
  fc
    .double({ min: 0, max: 5, noNaN: true })
    .map((share): Jitter => ({ kind: "proportional", share })),
);
const backoffs: fc.Arbitrary<BackoffPolicy> = fc
  .record({
    baseMs: fc.double({ min: 0.001, max: 10_000, noNaN: true }),
    factor: fc.double({ min: 1, max: 100, noNaN: true }),
    head: fc.double({ min: 0, max: 1e9, noNaN: true }),
    steps: fc.oneof(fc.integer({ min: 0, max: 100 }), fc.constant(Infinity)),
    jitter: jitters,
  })
  .map(({ head, ...rest }) => defineBackoff({ ...rest, capMs: rest.baseMs + head }));
const retries = fc.oneof(
  fc.integer({ min: 0, max: 100 }),
  fc.constantFrom(1_000, 1_000_000, Number.MAX_SAFE_INTEGER),
);
const draws = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

/** The range of a delay, by the jitter's definition. */
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
function wait(policy: BackoffPolicy, retry: number, random?: () => number): number {
  const step = nextDelay(policy, retry, random);
  if (step.kind !== "wait") throw new Error(`exhausted at ${retry}`);
  return step.afterMs;
}
/** The mean over an even grid of draws: exact for a linear spread, so the test is deterministic. */
function mean(policy: BackoffPolicy, retry: number): number {
  const samples = Array.from({ length: 1_000 }, (_, i) =>
    wait(policy, retry, () => (i + 0.5) / 1_000),
  );
  return samples.reduce((sum, ms) => sum + ms, 0) / samples.length;
}

test("keeps every delay in its jitter's range around min(cap, base * factor^n), without overflow", () => {
  fc.assert(
    fc.property(backoffs, retries, draws, (policy, retry, draw) => {
      const step = nextDelay(policy, retry, () => draw);
      if (retry >= policy.steps) {
        expect(step).toEqual({ kind: "exhausted", steps: policy.steps });
        return;
      }
      const delayMs = Math.min(policy.capMs, policy.baseMs * policy.factor ** retry);
      const [low, high] = range(delayMs, policy.jitter);
      if (step.kind !== "wait") throw new Error("exhausted too early");
      expect(Number.isFinite(step.afterMs)).toBe(true);
      expect(step.afterMs).toBeGreaterThanOrEqual(low * (1 - 1e-9));
      expect(step.afterMs).toBeLessThanOrEqual(high * (1 + 1e-9));
    }),
  );
});

test("delays without jitter never shrink and stay at the cap", () => {
  const policy: BackoffPolicy = { ...conflictBackoff, jitter: { kind: "none" } };
  const delays = [0, 1, 2, 6, 7, 49, 1e6].map((retry) => wait(policy, retry));
  expect(delays).toEqual([50, 100, 200, 3_200, 5_000, 5_000, 5_000]);
});

test.each<[Jitter, number]>([
  [{ kind: "none" }, 400],
  [{ kind: "equal" }, 300],
  [{ kind: "full" }, 200],
  [{ kind: "proportional", share: 0.1 }, 420],
])("the mean of %j matches its definition", (jitter, expected) => {
  const policy: BackoffPolicy = { baseMs: 100, factor: 2, capMs: 10_000, steps: 9, jitter };
  expect(mean(policy, 2)).toBeCloseTo(expected, 6);
});

test("depends on the retry number only, not on process state", () => {
  const half = () => 0.5;
  expect(wait(failureBackoff, 3, half)).toBe(wait(failureBackoff, 3, half));
  expect(wait(failureBackoff, 0, half)).toBe(125);
});

test("returns exhausted after the last step", () => {
  const policy: BackoffPolicy = { ...conflictBackoff, steps: 3 };
  expect(nextDelay(policy, 2).kind).toBe("wait");
  expect(nextDelay(policy, 3)).toEqual({ kind: "exhausted", steps: 3 });
  expect(nextDelay({ ...policy, steps: 0 }, 0)).toEqual({ kind: "exhausted", steps: 0 });
});

test("the backoffs of the queue never end", () => {
  for (const policy of [conflictBackoff, failureBackoff, rejectedBackoff]) {
    expect(wait(policy, 1_000_000, () => 0.999)).toBeLessThanOrEqual(policy.capMs);
    expect(defineBackoff(policy)).toBe(policy);
  }
});

test("defaultRetry is client-go's: four sleeps of [10, 11) ms, under 44 ms in total", () => {
  const low = [0, 1, 2, 3].map((retry) => wait(defaultRetry, retry, () => 0));
  const high = [0, 1, 2, 3].map((retry) => wait(defaultRetry, retry, () => 0.999_999));
  expect(low).toEqual([10, 10, 10, 10]);
  expect(Math.max(...high)).toBeLessThan(11);
  expect(nextDelay(defaultRetry, 4).kind).toBe("exhausted");
});

test("defaultBackoff is client-go's: sleeps of [10, 11), [50, 55) and [250, 275) ms", () => {
  expect([0, 1, 2].map((retry) => wait(defaultBackoff, retry, () => 0))).toEqual([10, 50, 250]);
  const high = [0, 1, 2].map((retry) => wait(defaultBackoff, retry, () => 0.999_999));
  [11, 55, 275].forEach((limit, retry) => expect(high[retry]).toBeLessThan(limit));
  expect(nextDelay(defaultBackoff, 3).kind).toBe("exhausted");
});

test.each<[string, Partial<BackoffPolicy>]>([
  ["a base of 0", { baseMs: 0 }],
  ["a base that is NaN", { baseMs: NaN }],
  ["a factor below 1", { factor: 0.5 }],
  ["a cap below the base", { capMs: 49 }],
  ["an infinite cap", { capMs: Infinity }],
  ["negative steps", { steps: -1 }],
  ["steps that are NaN", { steps: NaN }],
  ["a negative share", { jitter: { kind: "proportional", share: -0.1 } }],
  ["an infinite share", { jitter: { kind: "proportional", share: Infinity } }],
])("rejects %s at construction", (_what, wrong) => {
  expect(() => defineBackoff({ ...conflictBackoff, ...wrong })).toThrow(RangeError);
});
