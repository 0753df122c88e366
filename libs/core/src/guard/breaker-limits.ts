import type { ErrorIssue } from "../errors.ts";
import { BREAKER } from "./breaker-rules.ts";

/** The configurable thresholds and times of a cluster's circuit breaker. The fleet shares them; the last configured ones apply. */
export interface BreakerLimits {
  /** Failed calls in a row that open the breaker. */
  readonly failures: number;
  /** Calls of the last seconds from which shares are judged. */
  readonly calls: number;
  /** Share of failed calls that opens the breaker, above 0 to 1. */
  readonly failedShare: number;
  /** First open time in ms. Doubles with each further opening. */
  readonly openMs: number;
  /** Longest open time in ms, before jitter. */
  readonly maxOpenMs: number;
}

export const DEFAULT_BREAKER_LIMITS: BreakerLimits = {
  failures: BREAKER.consecutive,
  calls: BREAKER.minCalls,
  failedShare: BREAKER.failedShare,
  openMs: BREAKER.openUs / 1_000,
  maxOpenMs: BREAKER.maxOpenUs / 1_000,
};

const OPEN_MS = { least: 100, most: 300_000 } as const;

/** Applies defaults. A time that is given moves the default of the other one: the first is at most the longest. */
export function breakerLimits(input: Partial<BreakerLimits>): BreakerLimits {
  const { openMs, maxOpenMs } = DEFAULT_BREAKER_LIMITS;
  return {
    ...DEFAULT_BREAKER_LIMITS,
    openMs: Math.min(openMs, input.maxOpenMs ?? openMs),
    maxOpenMs: Math.max(maxOpenMs, input.openMs ?? maxOpenMs),
    ...input,
  };
}

/** Returns the errors of complete limits. Details have no subject, so callers can prefix their own names. */
export function findBreakerIssues(limits: BreakerLimits): ErrorIssue[] {
  const { failures, calls, failedShare, openMs, maxOpenMs } = limits;
  const issues: ErrorIssue[] = [];
  const require = (name: keyof BreakerLimits, isSound: boolean, range: string) => {
    if (isSound) return;
    issues.push({
      pointer: `/breaker/${name}`,
      detail: `must be ${range} (got ${JSON.stringify(limits[name]) ?? String(limits[name])})`,
    });
  };
  require("failures", isWithin(failures, 1, 1_000) &&
    Number.isInteger(failures), "an integer from 1 to 1000");
  require("calls", isWithin(calls, 1, 10_000) &&
    Number.isInteger(calls), "an integer from 1 to 10000");
  require("failedShare", isWithin(failedShare, 0.01, 1), "a share from 0.01 to 1");
  const times = `from ${OPEN_MS.least} to ${OPEN_MS.most} ms`;
  const isOpenSound = isWithin(openMs, OPEN_MS.least, OPEN_MS.most);
  const isMaxSound = isWithin(maxOpenMs, OPEN_MS.least, OPEN_MS.most);
  require("openMs", isOpenSound, times);
  require("maxOpenMs", isMaxSound, times);
  if (isOpenSound && isMaxSound) {
    require("openMs", openMs <= maxOpenMs, `at most the longest open time, ${maxOpenMs} ms`);
  }
  return issues;
}

/** Values may come from plain JavaScript, where "12" is not a number. */
function isWithin(value: unknown, least: number, most: number): boolean {
  return typeof value === "number" && value >= least && value <= most;
}
