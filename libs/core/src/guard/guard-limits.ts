import { invalidConfig, type ErrorIssue } from "../errors.ts";

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

/**
 * Calls per second that a guard can keep. Beyond the highest a token would last less than 10 us, finer than a round trip to
 * Redis could share; below the lowest, times grow past what a number holds exactly.
 */
export const GUARD_RATES: { readonly lowest: number; readonly highest: number } = {
  lowest: 0.001,
  highest: 100_000,
};
const MAX_BURST = 1_000_000;
const MAX_IN_FLIGHT = 10_000;

/** Most of the bucket that is kept from the lowest class. */
export const LARGEST_FLOOR = 0.3;

/** Fills in what is not given. The lowest rate follows the rate: a fiftieth, at least 1. */
export function guardLimits(input: Partial<GuardLimits>): GuardLimits {
  return checkGuardLimits(fillIn(input));
}

/** @throws KonvergeError `invalid_config` with every limit that cannot work, and the cure */
export function checkGuardLimits(limits: GuardLimits): GuardLimits {
  const issues = issuesOf(limits).map(({ pointer, detail }) => ({
    pointer,
    detail: `${pointer.slice(1)}: ${detail}`,
  }));
  if (issues.length > 0) {
    throw invalidConfig(issues, "the limits of the guard are");
  }
  return limits;
}

/** What is wrong with limits as they were given, for those who name them otherwise: details begin with "is". */
export function findGuardLimitIssues(input: Partial<GuardLimits>): ErrorIssue[] {
  return issuesOf(fillIn(input));
}

/** What is wrong with a rate, or undefined. */
export function findRateIssue(ratePerSecond: number): string | undefined {
  const { lowest, highest } = GUARD_RATES;
  if (isWithin(ratePerSecond, lowest, highest)) return undefined;
  return `is ${show(ratePerSecond)}; write calls per second from ${lowest} to ${highest}`;
}

/** What is wrong with a number of calls at once, or undefined. */
export function findInFlightIssue(maxInFlight: number): string | undefined {
  if (Number.isInteger(maxInFlight) && isWithin(maxInFlight, 1, MAX_IN_FLIGHT)) return undefined;
  return `is ${show(maxInFlight)}; write a whole number from 1 to ${MAX_IN_FLIGHT}`;
}

function fillIn(input: Partial<GuardLimits>): GuardLimits {
  const { ratePerSecond = DEFAULT_GUARD_LIMITS.ratePerSecond } = input;
  // What follows from a wrong rate is not another mistake.
  const sound =
    findRateIssue(ratePerSecond) === undefined ? ratePerSecond : DEFAULT_GUARD_LIMITS.ratePerSecond;
  return {
    ...DEFAULT_GUARD_LIMITS,
    burst: Math.max(Math.ceil(2 * sound), 2 + Math.ceil(sound * 0.1)),
    minRatePerSecond: Math.min(sound, Math.max(1, sound / 50)),
    ...input,
    ratePerSecond,
  };
}

function issuesOf(limits: GuardLimits): ErrorIssue[] {
  const issues: ErrorIssue[] = [];
  const refuse = (name: keyof GuardLimits, detail: string | undefined) => {
    if (detail !== undefined) issues.push({ pointer: `/${name}`, detail });
  };
  const { ratePerSecond, burst, minRatePerSecond, tokenTtlMs, maxWaitMs } = limits;
  const rateIssue = findRateIssue(ratePerSecond);
  refuse("ratePerSecond", rateIssue);
  refuse("minRatePerSecond", findRateIssue(minRatePerSecond));
  if (rateIssue === undefined && minRatePerSecond > ratePerSecond) {
    refuse("minRatePerSecond", `is ${minRatePerSecond}; write at most the rate, ${ratePerSecond}`);
  }
  const isTtlSound = Number.isInteger(tokenTtlMs) && isWithin(tokenTtlMs, 10, 1_000);
  if (!isTtlSound) refuse("tokenTtlMs", `is ${show(tokenTtlMs)}; write whole ms from 10 to 1000`);
  if (!(Number.isInteger(maxWaitMs) && isWithin(maxWaitMs, 10, 10_000))) {
    refuse("maxWaitMs", `is ${show(maxWaitMs)}; write whole ms from 10 to 10000`);
  }
  if (!(Number.isInteger(burst) && isWithin(burst, 2, MAX_BURST))) {
    refuse("burst", `is ${show(burst)}; write a whole number from 2 to ${MAX_BURST}`);
  } else if (rateIssue === undefined && isTtlSound) {
    // Below this the lowest class would never find a token above its floor.
    const least = Math.ceil((ratePerSecond * tokenTtlMs) / 1_000 + 1 / (1 - LARGEST_FLOOR));
    if (burst < least) {
      const why = `for ${ratePerSecond} calls/s with tokens of ${tokenTtlMs} ms`;
      refuse("burst", `is ${burst}; write at least ${least} ${why}, or lower the rate`);
    }
  }
  return issues;
}

/** Values may come from plain JavaScript, where "500" is as good as 500 until it is added to something. */
function isWithin(value: unknown, least: number, most: number): boolean {
  return typeof value === "number" && value >= least && value <= most;
}

function show(value: unknown): string {
  return typeof value === "number" ? String(value) : (JSON.stringify(value) ?? String(value));
}

/** Tokens that lie in a full bucket: what the burst leaves once leased tokens may be as old as their ttl. */
export function bucketSize({ ratePerSecond, burst, tokenTtlMs }: GuardLimits): number {
  return burst - (ratePerSecond * tokenTtlMs) / 1_000;
}
