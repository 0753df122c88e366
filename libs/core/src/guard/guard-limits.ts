import { invalidConfig, type ErrorIssue } from "../errors.ts";
import { LARGEST_FLOOR } from "./admit-call.ts";
import {
  breakerLimits,
  DEFAULT_BREAKER_LIMITS,
  findBreakerIssues,
  type BreakerLimits,
} from "./breaker-limits.ts";

/** The limits of a cluster's guard, shared by the fleet. The last configured limits apply. */
export interface GuardLimits {
  /** Long-term calls per second of the fleet. Too low causes a backlog; too high leaves throttling to the server. */
  readonly ratePerSecond: number;
  /** Additional calls in any window. Too low wastes rate, because tokens expire; too high causes load spikes. */
  readonly burst: number;
  /** Minimum of the adaptive rate, in calls per second. Too low slows recovery. */
  readonly minRatePerSecond: number;
  /** Lifetime of leased tokens from their request, in ms. Short keeps the burst exact; long saves round trips. */
  readonly tokenTtlMs: number;
  /** Longest time for which tokens are promised ahead, in ms. */
  readonly maxWaitMs: number;
  readonly breaker: BreakerLimits;
}

/** The limits to change; the others have their defaults. */
export type GuardLimitsInput = Partial<Omit<GuardLimits, "breaker">> & {
  readonly breaker?: Partial<BreakerLimits>;
};

/** Protects without being the bottleneck: an API server handles hundreds to a few thousand calls per second. */
export const DEFAULT_GUARD_LIMITS: GuardLimits = {
  ratePerSecond: 500,
  burst: 1_000,
  minRatePerSecond: 10,
  tokenTtlMs: 100,
  maxWaitMs: 1_000,
  breaker: DEFAULT_BREAKER_LIMITS,
};

/** The traditional limits of Go controllers: `rest.Config` with QPS 10 and Burst 20. */
export const CLASSIC_GUARD_LIMITS: GuardLimits = {
  ...DEFAULT_GUARD_LIMITS,
  ratePerSecond: 10,
  burst: 20,
  minRatePerSecond: 1,
};

/**
 * The range of rates in calls per second. Above it, a token would last less than 10 us, too short to share over a round trip
 * to Redis; below it, times exceed the exact range of a number.
 */
export const GUARD_RATES: { readonly lowest: number; readonly highest: number } = {
  lowest: 0.001,
  highest: 100_000,
};
const MAX_BURST = 1_000_000;
const MAX_IN_FLIGHT = 10_000;

/** Applies defaults. The minimum rate is a fiftieth of the rate, at least 1. */
export function guardLimits(input: GuardLimitsInput): GuardLimits {
  return checkGuardLimits(fillIn(input));
}

/** @throws KonvergeError `invalid_config` with all invalid limits and suggested fixes */
export function checkGuardLimits(limits: GuardLimits): GuardLimits {
  const issues = issuesOf(limits).map(({ pointer, detail }) => ({
    pointer,
    detail: `${pointer.slice(1).replaceAll("/", ".")}: ${detail}`,
  }));
  if (issues.length > 0) {
    throw invalidConfig(issues, "the limits of the guard are");
  }
  return limits;
}

/** Returns the errors of limits as they were given. Details have no subject, so callers can prefix their own names. */
export function findGuardLimitIssues(input: GuardLimitsInput): ErrorIssue[] {
  return issuesOf(fillIn(input));
}

/** Returns the error in a rate, or undefined. */
export function findRateIssue(ratePerSecond: number): string | undefined {
  const { lowest, highest } = GUARD_RATES;
  if (isWithin(ratePerSecond, lowest, highest)) return undefined;
  return `must be ${lowest} to ${highest} calls per second (got ${show(ratePerSecond)})`;
}

/** Returns the error in a concurrency limit, or undefined. */
export function findInFlightIssue(maxInFlight: number): string | undefined {
  if (Number.isInteger(maxInFlight) && isWithin(maxInFlight, 1, MAX_IN_FLIGHT)) return undefined;
  return `must be an integer from 1 to ${MAX_IN_FLIGHT} (got ${show(maxInFlight)})`;
}

function fillIn(input: GuardLimitsInput): GuardLimits {
  const { ratePerSecond = DEFAULT_GUARD_LIMITS.ratePerSecond } = input;
  // Consequences of an invalid rate are not reported.
  const sound =
    findRateIssue(ratePerSecond) === undefined ? ratePerSecond : DEFAULT_GUARD_LIMITS.ratePerSecond;
  return {
    ...DEFAULT_GUARD_LIMITS,
    burst: Math.max(Math.ceil(2 * sound), 2 + Math.ceil(sound * 0.1)),
    minRatePerSecond: Math.min(sound, Math.max(1, sound / 50)),
    ...input,
    ratePerSecond,
    breaker: breakerLimits(input.breaker ?? {}),
  };
}

function issuesOf(limits: GuardLimits): ErrorIssue[] {
  const issues: ErrorIssue[] = [];
  const refuse = (name: Exclude<keyof GuardLimits, "breaker">, detail: string | undefined) => {
    if (detail !== undefined) issues.push({ pointer: `/${name}`, detail });
  };
  const { ratePerSecond, burst, minRatePerSecond, tokenTtlMs, maxWaitMs } = limits;
  const rateIssue = findRateIssue(ratePerSecond);
  refuse("ratePerSecond", rateIssue);
  refuse("minRatePerSecond", findRateIssue(minRatePerSecond));
  if (rateIssue === undefined && minRatePerSecond > ratePerSecond) {
    refuse(
      "minRatePerSecond",
      `must be at most the rate, ${ratePerSecond} (got ${minRatePerSecond})`,
    );
  }
  const isTtlSound = Number.isInteger(tokenTtlMs) && isWithin(tokenTtlMs, 10, 1_000);
  if (!isTtlSound)
    refuse("tokenTtlMs", `must be an integer from 10 to 1000 ms (got ${show(tokenTtlMs)})`);
  if (!(Number.isInteger(maxWaitMs) && isWithin(maxWaitMs, 10, 10_000))) {
    refuse("maxWaitMs", `must be an integer from 10 to 10000 ms (got ${show(maxWaitMs)})`);
  }
  if (!(Number.isInteger(burst) && isWithin(burst, 2, MAX_BURST))) {
    refuse("burst", `must be an integer from 2 to ${MAX_BURST} (got ${show(burst)})`);
  } else if (rateIssue === undefined && isTtlSound) {
    // With a smaller burst, the lowest class would never get a token above its floor.
    const least = Math.ceil((ratePerSecond * tokenTtlMs) / 1_000 + 1 / (1 - LARGEST_FLOOR));
    if (burst < least) {
      const why = `for ${ratePerSecond} calls/s with tokens of ${tokenTtlMs} ms`;
      refuse(
        "burst",
        `must be at least ${least} ${why} (got ${burst}); raise it, or lower the rate`,
      );
    }
  }
  return [...issues, ...findBreakerIssues(limits.breaker)];
}

/** Values may come from plain JavaScript, where "500" is not a number. */
function isWithin(value: unknown, least: number, most: number): boolean {
  return typeof value === "number" && value >= least && value <= most;
}

function show(value: unknown): string {
  return typeof value === "number" ? String(value) : (JSON.stringify(value) ?? String(value));
}

/** Returns the capacity of the bucket: the burst minus the tokens that leases can hold for their lifetime. */
export function bucketSize({ ratePerSecond, burst, tokenTtlMs }: GuardLimits): number {
  return burst - (ratePerSecond * tokenTtlMs) / 1_000;
}
