import { randomInt } from "node:crypto";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { largestExcess, type Use } from "./largest-excess.ts";
import { admit, newGuardState } from "./model/admit.ts";
import { bucketSize, type AdmitRequest, type GuardLimits } from "@konverge/core";
import type { GuardState } from "./model/guard-state.ts";

const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));
const isLong = process.env["KONVERGE_TEST_LONG"] === "1";
const numRuns = isLong ? 5_000 : 300;

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

/** Uses every granted token at its due time in true time, even if its worker should have dropped it. */
function live(limits: GuardLimits, steps: readonly (Step & Trouble)[]): History {
  let trueUs = 1e9;
  let offsetUs = 1.8e15;
  let runId = "r1";
  let state = newGuardState(limits, trueUs + offsetUs, runId);
  const uses: Use[] = [];
  const modes = new Set<string>();
  let [tokens, cuts, raises, tickets] = [0, 0, 0, 0];
  for (const one of steps) {
    trueUs += one.afterUs;
    offsetUs += one.clockUs ?? 0;
    runId = one.runId ?? runId;
    const before = state.ratePerSecond;
    const request = { ...askOf(state, one, `t${++tickets}`), runId };
    const { state: after, answer } = admit(state, request, limits, trueUs + offsetUs);
    state = after;
    modes.add(answer.mode);
    if (state.ratePerSecond < before) cuts += 1;
    if (state.ratePerSecond > before) raises += 1;
    if (answer.granted === 0) continue;
    tokens += answer.granted;
    uses.push({ atMs: (trueUs + answer.waitUs) / 1_000, tokens: answer.granted });
  }
  return { uses, tokens, cuts, raises, modes };
}
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
  const quiet: Step = {
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
  const limits: GuardLimits = {
    ratePerSecond: 10,
    minRatePerSecond: 1,
    tokenTtlMs: 50,
    maxWaitMs: 5_000,
    burst: 3,
  };
  const { uses, modes } = live(limits, [
    ...Array.from({ length: 10 }, () => quiet),
    { ...quiet, failed: 12 },
    ...Array.from({ length: 100 }, () => ({ ...quiet, afterUs: 50_000 })),
  ]);
  expect([...modes]).toEqual(["closed", "open", "halfOpen"]);
  expect(largestExcess(uses, limits.ratePerSecond)).toBeLessThanOrEqual(bucketSize(limits));
});

const clockBack = fc.oneof(
  { weight: 20, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.integer({ min: -5_000_000, max: 0 }) },
  { weight: 1, arbitrary: fc.integer({ min: -3_600_000_000, max: -5_000_001 }) },
);

test(`P5 L1: a clock that steps back and a new Redis create no tokens (seed ${seed})`, () => {
  const troubled = fc
    .tuple(step, clockBack, fc.constantFrom(...Array.from({ length: 15 }, () => "r1"), "r2"))
    .map(([one, clockUs, runId]) => ({ ...one, clockUs, runId }));
  let worst = 0;
  fc.assert(
    fc.property(
      limitsOf,
      fc.array(troubled, { minLength: 1, maxLength: 200, size: "max" }),
      (limits, steps) => {
        const { uses } = live(limits, steps);
        const excess = largestExcess(uses, limits.ratePerSecond);
        worst = Math.max(worst, excess / bucketSize(limits));
        expect(excess).toBeLessThanOrEqual(bucketSize(limits) + rounding);
      },
    ),
    { seed, numRuns },
  );
  console.log({ worst });
});
