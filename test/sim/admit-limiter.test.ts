import * as fc from "fast-check";
import { expect, test } from "vitest";
import { largestExcess, type Use } from "./largest-excess.ts";
import { admit, newGuardState } from "./model/admit.ts";
import {
  DEFAULT_BREAKER_LIMITS,
  BREAKER,
  bucketSize,
  guardLimits,
  type AdmitRequest,
  type GuardLimits,
} from "@konverge/core";
import type { GuardState } from "./model/guard-state.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const numRuns = isLongRun ? 5_000 : 300;

const limitsOf = fc
  .record({
    ratePerSecond: fc.constantFrom(10, 50, 333.25, 500),
    spare: fc.integer({ min: 2, max: 200 }),
    minRatePerSecond: fc.constantFrom(1, 7),
    tokenTtlMs: fc.constantFrom(50, 100, 200),
    maxWaitMs: fc.constantFrom(100, 1_000, 5_000),
  })
  .map(({ spare, ...rest }): GuardLimits => ({
    ...rest,
    breaker: DEFAULT_BREAKER_LIMITS,
    burst: Math.ceil((rest.ratePerSecond * rest.tokenTtlMs) / 1_000) + spare,
  }));

const step = fc.record({
  afterUs: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 100_000 }) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 3_000_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 40_000_000 }) },
  ),
  worker: fc.constantFrom("a", "b", "c"),
  ok: fc.constantFrom(0, 1, 5, 100),
  failed: fc.constantFrom(0, 0, 0, 0, 1, 3, 12),
  slow: fc.constantFrom(0, 0, 0, 0, 4),
  throttled: fc.constantFrom(0, 0, 0, 0, 0, 1, 6),
  retryAfterUs: fc.constantFrom(0, 0, 1e6, 5e6),
  verdict: fc.constantFrom("ok", "ok", "failed", "neutral"),
  want: fc.constantFrom(1, 3, 64, 64),
  need: fc.constantFrom(1, 1, 1, 2),
  late: fc.constantFrom(0, 0, 0, 3),
  rank: fc.constantFrom(0, 1, 1, 2, 3),
  turn: fc.constantFrom("none", "once", "again"),
  random: fc.double({ min: 0, max: 0.999, noNaN: true }),
});
type Drawn = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Step = Omit<Drawn, "want"> & { readonly want: number };

/** Workers with the current generation and ticket; `change` alters Redis and its clock. */
function askOf(state: GuardState, one: Step, probe: string): AdmitRequest {
  return {
    ...one,
    runId: "r1",
    generation: state.generation,
    trailing: Math.floor(one.failed / 2),
    ticket: state.ticket,
    verdict: state.ticket === "" ? "" : one.verdict,
    need: Math.min(one.need, one.want),
    answeredUs: 0,
    elapsedUs: 0,
    probe,
  };
}

interface Trouble {
  /** Added to the clock of Redis before the step. */
  readonly clockUs?: number;
  readonly runId?: string;
}
interface History {
  readonly uses: readonly Use[];
  readonly tokens: number;
  readonly cuts: number;
  readonly raises: number;
  readonly modes: ReadonlySet<string>;
}

/**
 * Uses every granted token at its due time in true time, even if its worker should have dropped it. Workers send the time since
 * their last answer, late by up to 50 ms.
 */
function live(limits: GuardLimits, steps: readonly (Step & Trouble)[]): History {
  let trueUs = 1e9;
  let offsetUs = 1.8e15;
  let runId = "r1";
  let state = newGuardState(limits, trueUs + offsetUs, runId);
  const uses: Use[] = [];
  const modes = new Set<string>();
  let [tokens, cuts, raises, tickets] = [0, 0, 0, 0];
  const answered = new Map<string, { readonly atUs: number; readonly trueUs: number }>();
  for (const one of steps) {
    trueUs += one.afterUs;
    offsetUs += one.clockUs ?? 0;
    runId = one.runId ?? runId;
    const before = state.ratePerSecond;
    const last = answered.get(one.worker);
    const request = {
      ...askOf(state, one, `t${++tickets}`),
      runId,
      answeredUs: last?.atUs ?? 0,
      elapsedUs: last === undefined ? 0 : Math.max(0, trueUs - last.trueUs - one.random * 50_000),
    };
    const { state: after, answer } = admit(state, request, limits, trueUs + offsetUs);
    state = after;
    answered.set(one.worker, { atUs: answer.atUs, trueUs });
    modes.add(answer.mode);
    if (state.ratePerSecond < before) cuts += 1;
    if (state.ratePerSecond > before) raises += 1;
    if (answer.granted === 0) continue;
    tokens += answer.granted;
    uses.push({ atMs: (trueUs + answer.waitUs) / 1_000, tokens: answer.granted });
  }
  return { uses, tokens, cuts, raises, modes };
}
const QUIET: Step = {
  afterUs: 0,
  worker: "a",
  ok: 0,
  failed: 0,
  slow: 0,
  throttled: 0,
  retryAfterUs: 0,
  verdict: "ok",
  want: 2,
  need: 2,
  late: 0,
  rank: 0,
  turn: "none",
  random: 0,
};
const rounding = 0.01;

test(`P5 L1, L7: cuts, raises, pauses and openings create no tokens (seed ${seed})`, () => {
  const sums = { tokens: 0, cuts: 0, raises: 0, worst: 0 };
  const modes = new Set<string>();
  fc.assert(
    fc.property(
      limitsOf,
      fc.array(step, { minLength: 1, maxLength: 300, size: "max" }),
      (limits, steps) => {
        const history = live(limits, steps);
        const excess = largestExcess(history.uses, limits.ratePerSecond);
        sums.tokens += history.tokens;
        sums.cuts += history.cuts;
        sums.raises += history.raises;
        sums.worst = Math.max(sums.worst, excess / bucketSize(limits));
        for (const mode of history.modes) modes.add(mode);
        expect(excess).toBeLessThanOrEqual(bucketSize(limits) + rounding);
      },
    ),
    { seed, numRuns },
  );
  console.log(sums);
  expect([...modes].toSorted()).toEqual(["closed", "halfOpen", "open"]);
  expect(sums.tokens).toBeGreaterThan(100_000);
  expect(Math.min(sums.cuts, sums.raises)).toBeGreaterThan(1_000);
});

test("P5 L1: a probe starts after all tokens promised before the breaker opened", () => {
  const limits: GuardLimits = {
    ratePerSecond: 10,
    minRatePerSecond: 1,
    tokenTtlMs: 50,
    maxWaitMs: 5_000,
    burst: 3,
    breaker: DEFAULT_BREAKER_LIMITS,
  };
  const { uses, modes } = live(limits, [
    ...Array.from({ length: 10 }, () => QUIET),
    { ...QUIET, failed: 12 },
    ...Array.from({ length: 100 }, () => ({ ...QUIET, afterUs: 50_000 })),
  ]);
  expect([...modes]).toEqual(["closed", "open", "halfOpen"]);
  expect(largestExcess(uses, limits.ratePerSecond)).toBeLessThanOrEqual(bucketSize(limits));
});

const clockSteps = fc.oneof(
  { weight: 20, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 5_000_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 3_600_000_000 }) },
);

test(`P5 L1: a clock that steps in either direction and a new Redis create no tokens (seed ${seed})`, () => {
  const troubled = fc
    .tuple(step, clockSteps, fc.constantFrom(...Array.from({ length: 15 }, () => "r1"), "r2"))
    .map(([one, clockUs, runId]) => ({ ...one, clockUs, runId }));
  // Each worker has asked before the first step, so that its clock counts.
  const first = (["a", "b", "c"] as const).map((worker): Step => ({ ...QUIET, worker }));
  const sums = { worst: 0, forward: 0 };
  fc.assert(
    fc.property(
      limitsOf,
      fc.array(troubled, { minLength: 1, maxLength: 200, size: "max" }),
      // A step forward may return what a step back took.
      fc.constantFrom(-1, 1),
      (limits, drawn, direction) => {
        const steps = drawn.map((one) => ({ ...one, clockUs: direction * one.clockUs }));
        const { uses } = live(limits, [...first, ...steps]);
        const excess = largestExcess(uses, limits.ratePerSecond);
        const forward = steps.filter(({ clockUs }) => clockUs > 0).length;
        sums.forward += forward;
        sums.worst = Math.max(sums.worst, excess / bucketSize(limits));
        // A step is seen only beyond the delay of messages.
        const unseen = (forward * BREAKER.clockSlackUs * limits.ratePerSecond) / 1e6;
        expect(excess).toBeLessThanOrEqual(bucketSize(limits) + unseen + rounding);
      },
    ),
    { seed, numRuns },
  );
  console.log(sums);
  expect(sums.forward).toBeGreaterThan(100);
});

test.each([1e6, 5e6, 60e6, 3_600e6])(
  `P5 L1: a clock that jumps by %i us under load creates no tokens (seed ${seed})`,
  (clockUs) => {
    const limits = guardLimits({});
    const full: Step = { ...QUIET, want: 64, need: 1, afterUs: 1_000 };
    const drain = Array.from({ length: 8_000 }, () => full);
    const steps = [...drain.slice(0, 4_000), { ...full, clockUs }, ...drain.slice(0, 4_000)];
    const { uses } = live(limits, [{ ...full, afterUs: 20_000_000 }, ...steps]);
    const unseen = (BREAKER.clockSlackUs * limits.ratePerSecond) / 1e6;
    expect(largestExcess(uses, limits.ratePerSecond)).toBeLessThanOrEqual(
      bucketSize(limits) + unseen + rounding,
    );
  },
);

test.each([-0.5e6, -4.9e6, -60e6])(
  `P5 L2: a clock that steps by %i us stops no worker (seed ${seed})`,
  (clockUs) => {
    const limits = guardLimits({});
    const full: Step = { ...QUIET, want: 64, need: 1, afterUs: 1_000 };
    const drain = Array.from({ length: 4_000 }, () => full);
    const { uses } = live(limits, [...drain, { ...full, clockUs }, ...drain]);
    const gaps = uses.slice(1).map(({ atMs }, i) => atMs - (uses[i]?.atMs ?? 0));
    expect(Math.max(...gaps.slice(10))).toBeLessThan(500);
  },
);
