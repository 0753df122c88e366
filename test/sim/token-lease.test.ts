import * as fc from "fast-check";
import { expect, test } from "vitest";
import { largestExcess, type Use } from "./largest-excess.ts";
import { bucketSize, DEFAULT_BREAKER_LIMITS, type GuardLimits } from "@konverge/core";
import { emptiedTat, leaseTokens, rescaledTat } from "./model/token-lease.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const numRuns = isLongRun ? 5_000 : 300;

/** Rates with integer interval and bucket, so that both models are comparable to the microsecond. */
const wholeLimits = fc
  .record({
    ratePerSecond: fc.constantFrom(10, 50, 200, 500),
    spare: fc.integer({ min: 2, max: 60 }),
    tokenTtlMs: fc.constantFrom(100, 200),
    maxWaitMs: fc.constantFrom(50, 1_000),
  })
  .map(({ spare, ...rest }): GuardLimits => ({
    ...rest,
    breaker: DEFAULT_BREAKER_LIMITS,
    minRatePerSecond: 1,
    burst: (rest.ratePerSecond * rest.tokenTtlMs) / 1_000 + spare,
  }));
const pauseUs = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 20_000 }), {
  weight: 1,
  arbitrary: fc.integer({ min: 0, max: 30_000_000 }),
});

/** The definition: a token is usable if no window that ends with it contains too many. */
function naiveDueUs(
  grants: readonly number[],
  startUs: number,
  nowUs: number,
  limits: GuardLimits,
) {
  const intervalUs = 1e6 / limits.ratePerSecond;
  // The bucket is empty at the start.
  const fromStart = startUs + (grants.length + 1) * intervalUs;
  return grants.reduce(
    (dueUs, atUs, i) =>
      Math.max(dueUs, atUs + (grants.length - i + 1 - bucketSize(limits)) * intervalUs),
    Math.max(nowUs, fromStart),
  );
}

test(`P5 L4: leases of one token equal those of a naive list of events (seed ${seed})`, () => {
  const steps = fc.array(pauseUs, { minLength: 1, maxLength: 150, size: "max" });
  let refused = 0;
  let promised = 0;
  fc.assert(
    fc.property(wholeLimits, steps, (limits, pauses) => {
      let nowUs = 0;
      let tatUs = emptiedTat(limits, limits.ratePerSecond, 0);
      const grants: number[] = [];
      for (const pause of pauses) {
        nowUs += pause;
        const bucket = { tatUs, ratePerSecond: limits.ratePerSecond };
        const lease = leaseTokens(limits, bucket, { nowUs, want: 1, need: 1, rank: 0 });
        const dueUs = naiveDueUs(grants, 0, nowUs, limits);
        const latestUs = nowUs + limits.maxWaitMs * 1_000;
        // The model rounds up to the next microsecond.
        if (dueUs !== latestUs) expect(lease.granted).toBe(dueUs < latestUs ? 1 : 0);
        if (lease.granted === 1) {
          expect([0, 1]).toContain(nowUs + lease.waitUs - dueUs);
          grants.push(dueUs);
          promised += dueUs > nowUs ? 1 : 0;
        } else {
          refused += 1;
        }
        ({ tatUs } = lease);
      }
    }),
    { seed, numRuns },
  );
  expect(Math.min(refused, promised)).toBeGreaterThan(0);
});

/** Demands of classes: few or many tokens, for cheap or expensive calls. */
const ask = fc.record({
  pauseUs,
  want: fc.constantFrom(1, 1, 2, 10, 64),
  cost: fc.constantFrom(1, 1, 1, 2, 10),
  rank: fc.constantFrom(0, 1, 2, 3),
  ahead: fc.constantFrom(0, 0, 3, 50),
  isContended: fc.boolean(),
});
const anyLimits = fc
  .record({
    ratePerSecond: fc.oneof(
      fc.constantFrom(10, 500),
      fc.double({ min: 0.5, max: 5_000, noNaN: true }),
    ),
    spare: fc.integer({ min: 2, max: 200 }),
    tokenTtlMs: fc.constantFrom(10, 100, 1_000),
    maxWaitMs: fc.constantFrom(10, 1_000, 10_000),
  })
  .map(({ spare, ...rest }): GuardLimits => ({
    ...rest,
    breaker: DEFAULT_BREAKER_LIMITS,
    minRatePerSecond: rest.ratePerSecond / 50,
    burst: Math.ceil((rest.ratePerSecond * rest.tokenTtlMs) / 1_000) + spare,
  }));
const dearest = (limits: GuardLimits) => Math.max(1, Math.floor(0.7 * bucketSize(limits)));

test(`P5 L1, L8: due times never exceed rate * T + bucket, for any cost of calls (seed ${seed})`, () => {
  let tokens = 0;
  fc.assert(
    fc.property(
      anyLimits,
      fc.array(ask, { minLength: 1, maxLength: 200, size: "max" }),
      (limits, asks) => {
        let nowUs = 0;
        let tatUs = emptiedTat(limits, limits.ratePerSecond, 0);
        const uses: Use[] = [];
        for (const { pauseUs: pause, cost, rank, want, ...queue } of asks) {
          nowUs += pause;
          const need = Math.min(cost, dearest(limits));
          const lease = leaseTokens(
            limits,
            { tatUs, ratePerSecond: limits.ratePerSecond },
            { nowUs, want: Math.max(want, need), need, rank },
            queue,
          );
          ({ tatUs } = lease);
          expect(lease.granted === 0 || lease.granted >= need).toBe(true);
          if (lease.granted > 0) {
            uses.push({ atMs: (nowUs + lease.waitUs) / 1_000, tokens: lease.granted });
          }
          tokens += lease.granted;
        }
        // Only rounding, far below one token.
        expect(largestExcess(uses, limits.ratePerSecond)).toBeLessThanOrEqual(
          bucketSize(limits) + 0.01,
        );
      },
    ),
    { seed, numRuns },
  );
  expect(tokens).toBeGreaterThan(10_000);
});

test(`P5 L7: a rescaled bucket has the same tokens, after a raise when the last promise is due (seed ${seed})`, () => {
  const rates = fc.double({ min: 0.1, max: 5_000, noNaN: true });
  fc.assert(
    fc.property(
      rates,
      rates,
      fc.double({ min: 1, max: 500, noNaN: true }),
      fc.double({ min: 0, max: 1_000, noNaN: true }),
      fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e7, noNaN: true })),
      (from, to, size, debt, dueInUs) => {
        const nowUs = 1e9;
        const promisedUs = nowUs + dueInUs;
        const whenUs = to > from ? promisedUs : nowUs;
        const levelAt = (tatUs: number, rate: number) =>
          size - (Math.max(0, tatUs - whenUs) * rate) / 1e6;
        const tatUs = Math.ceil(nowUs + (debt * 1e6) / from);
        const after = rescaledTat({ tatUs, promisedUs }, nowUs, { from, to });
        const rounding = (Math.max(from, to) / 1e6) * 2 * Math.max(1, to / from) + 1e-5;
        expect(Math.abs(levelAt(after, to) - levelAt(tatUs, from))).toBeLessThanOrEqual(rounding);
      },
    ),
    { seed, numRuns: numRuns * 3 },
  );
});
