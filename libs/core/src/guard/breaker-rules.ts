/**
 * Constants of the breaker and of the adaptive rate, also for the script. Times in microseconds. `consecutive`, `minCalls`,
 * `failedShare`, `openUs` and `maxOpenUs` are defaults of {@link BreakerLimits}.
 */
export const BREAKER: {
  readonly windowUs: number;
  readonly quorumUs: number;
  readonly failingUs: number;
  readonly consecutive: number;
  readonly minCalls: number;
  readonly failedShare: number;
  readonly slowShare: number;
  readonly slowFailedShare: number;
  readonly strainedShare: number;
  readonly strainedUs: number;
  readonly openUs: number;
  readonly maxOpenUs: number;
  readonly isolatedUs: number;
  readonly calmUs: number;
  readonly ticketUs: number;
  readonly restartShare: number;
  readonly cutFactor: number;
  readonly cutEveryUs: number;
  readonly cutFailedShare: number;
  readonly raiseShare: number;
  readonly clockSlackUs: number;
  readonly outageFailures: number;
  readonly outageCalmMs: number;
} = {
  /** Time constant of the decaying counts. */
  windowUs: 5e6,
  /** A worker counts as live or failing for this long after its report. */
  quorumUs: 10e6,
  /** A worker with a failure counts as failing for at least this long: partial failures alternate with successes. */
  failingUs: 2e6,
  /** The fast rule: after a long healthy time, shares react slowly. */
  consecutive: 12,
  minCalls: 20,
  failedShare: 0.5,
  /** Nearly all calls slow, and a fifth failing. */
  slowShare: 0.8,
  slowFailedShare: 0.2,
  /** Half of the calls answered 429 for this long, at the lowest rate. */
  strainedShare: 0.5,
  strainedUs: 30e6,
  openUs: 1e6,
  /** One probe of the fleet every 5 s costs nothing; a longer pause delays recovery (docs/decisions/0004). */
  maxOpenUs: 5e6,
  /** Interval of token requests for an isolated server. */
  isolatedUs: 30e6,
  /** If the breaker was closed for less, the next opening is longer. */
  calmUs: 10e6,
  /** A probe's deadline of 5 s, plus 1 s for its report. */
  ticketUs: 6e6,
  /** Share of the full rate after an outage. */
  restartShare: 0.2,
  cutFactor: 0.7,
  cutEveryUs: 1e6,
  /** Fewer failures than this do not cut the rate: a server that answers one call in a hundred with 500 is not overloaded. */
  cutFailedShare: 0.1,
  /** Share of the full rate that is restored per second. */
  raiseShare: 0.1,
  /** A worker's clock confirms the time that passed since its last answer within this: messages are delayed. */
  clockSlackUs: 100e3,
  /** Failures in a row that are reported as an outage, long before they open the breaker. */
  outageFailures: 3,
  /** An outage has ended after this time without further evidence. Longer than the timeout of a call. */
  outageCalmMs: 30e3,
};

/** Returns the reason to open the breaker, as it is logged, or undefined. */
export type OpeningReason = "consecutive" | "failedShare" | "slow" | "strained";
