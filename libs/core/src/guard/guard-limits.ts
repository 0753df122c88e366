import { KonvergeError, type ErrorIssue } from "../errors.ts";

/** What one cluster's guard allows. One set for the whole fleet; whoever sets it last wins. */
export interface GuardLimits {
  /** Calls per second of the whole fleet, in the long run. Too low makes a backlog; too high leaves it to the server to refuse. */
  readonly ratePerSecond: number;
  /** Calls on top of that in any window. Too low loses rate to the short life of tokens; too high is felt as a jolt. */
  readonly burst: number;
  /** The adaptive rate never falls below this many calls per second. Too low and a server that is well again waits for long. */
  readonly minRatePerSecond: number;
  /** Leased tokens die so many ms after they were asked for. Short keeps the burst exact; long saves round trips. */
  readonly tokenTtlMs: number;
  /** Longest time ahead for which tokens are promised, in ms. */
  readonly maxWaitMs: number;
}

/** Protects without being the bottleneck: an API server stands some hundreds to a few thousand calls a second. */
export const DEFAULT_GUARD_LIMITS: GuardLimits = {
  ratePerSecond: 500,
  burst: 1_000,
  minRatePerSecond: 10,
  tokenTtlMs: 100,
  maxWaitMs: 1_000,
};

/** What controllers in Go have long been given, as `rest.Config` with QPS 10 and Burst 20. */
export const CLASSIC_GUARD_LIMITS: GuardLimits = {
  ...DEFAULT_GUARD_LIMITS,
  ratePerSecond: 10,
  burst: 20,
  minRatePerSecond: 1,
};

/** Beyond this a token would last less than 10 us, finer than a round trip to Redis could share. */
const MAX_RATE = 100_000;

/** Most of the bucket that is kept from the lowest class. */
export const LARGEST_FLOOR = 0.3;

/** Fills in what is not given. The lowest rate follows the rate: a fiftieth, at least 1. */
export function guardLimits(input: Partial<GuardLimits>): GuardLimits {
  const ratePerSecond = input.ratePerSecond ?? DEFAULT_GUARD_LIMITS.ratePerSecond;
  return checkGuardLimits({
    ...DEFAULT_GUARD_LIMITS,
    burst: Math.max(2 * ratePerSecond, 2 + Math.ceil(ratePerSecond * 0.1)),
    minRatePerSecond: Math.min(ratePerSecond, Math.max(1, ratePerSecond / 50)),
    ...input,
    ratePerSecond,
  });
}

/** @throws KonvergeError `invalid_config` with every limit that cannot work, and the cure */
export function checkGuardLimits(limits: GuardLimits): GuardLimits {
  const issues: ErrorIssue[] = [];
  const refuse = (name: keyof GuardLimits, detail: string) =>
    issues.push({ pointer: `/${name}`, detail: `${name}: ${detail}` });
  const { ratePerSecond, burst, minRatePerSecond, tokenTtlMs, maxWaitMs } = limits;
  if (!(ratePerSecond > 0 && ratePerSecond <= MAX_RATE)) {
    refuse(
      "ratePerSecond",
      `is ${ratePerSecond}; write calls per second above 0, at most ${MAX_RATE}`,
    );
  }
  if (!(minRatePerSecond > 0 && minRatePerSecond <= ratePerSecond)) {
    refuse(
      "minRatePerSecond",
      `is ${minRatePerSecond}; write a rate above 0, at most ratePerSecond (${ratePerSecond})`,
    );
  }
  if (!(Number.isInteger(tokenTtlMs) && tokenTtlMs >= 10 && tokenTtlMs <= 1_000)) {
    refuse("tokenTtlMs", `is ${tokenTtlMs}; write whole ms from 10 to 1000`);
  }
  if (!(Number.isInteger(maxWaitMs) && maxWaitMs >= 10 && maxWaitMs <= 10_000)) {
    refuse("maxWaitMs", `is ${maxWaitMs}; write whole ms from 10 to 10000`);
  }
  if (issues.length === 0) {
    // Below this the lowest class would never find a token above its floor.
    const least = Math.ceil((ratePerSecond * tokenTtlMs) / 1_000 + 1 / (1 - LARGEST_FLOOR));
    if (!(Number.isInteger(burst) && burst >= least && burst <= 10 * MAX_RATE)) {
      refuse(
        "burst",
        `is ${burst}; write a whole number, at least ${least} for ${ratePerSecond} calls/s with tokens of ${tokenTtlMs} ms`,
      );
    }
  }
  if (issues.length > 0) {
    throw new KonvergeError(
      "invalid_config",
      `the limits of the guard are not valid:\n${issues.map(({ detail }) => `  ${detail}`).join("\n")}`,
      { issues },
    );
  }
  return limits;
}

/** Tokens that lie in a full bucket: what the burst leaves once leased tokens may be as old as their ttl. */
export function bucketSize({ ratePerSecond, burst, tokenTtlMs }: GuardLimits): number {
  return burst - (ratePerSecond * tokenTtlMs) / 1_000;
}
