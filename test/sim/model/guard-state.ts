import type { BreakerMode } from "@konverge/core";

/** A worker's place in the order of token requests. */
export interface Turn {
  readonly rank: number;
  /** Tokens of the class that were requested before. */
  readonly place: number;
  /** The place is lost at this time. */
  readonly untilUs: number;
}

/**
 * The fleet's state of one API server. Times are microseconds of the fleet's clock. The reference model of the script `admit`:
 * both have equal states, field by field.
 */
export interface GuardState {
  readonly mode: BreakerMode;
  /** Incremented at each transition; reports of other generations do not count. */
  readonly generation: number;
  /** End of the open time. */
  readonly untilUs: number;
  /** Consecutive openings, each longer than the last. */
  readonly openings: number;
  readonly closedUs: number;
  /** The ticket of the probe in flight; empty without one. */
  readonly ticket: string;
  readonly ticketUntilUs: number;
  /** Decaying counts of calls, failures, slow calls and 429s. */
  readonly total: number;
  readonly failed: number;
  readonly slow: number;
  readonly throttled: number;
  readonly windowUs: number;
  /** Failures since the last success, over the whole fleet. */
  readonly consecutive: number;
  /** Time at which the bucket is full again (GCRA's theoretical arrival time). */
  readonly tatUs: number;
  /** Time at which the last promised token is due. */
  readonly promisedUs: number;
  /** The adaptive rate. */
  readonly ratePerSecond: number;
  readonly cutUs: number;
  readonly raisedUs: number;
  /** End of the server's Retry-After. */
  readonly pausedUntilUs: number;
  /** Start of the time in which half of the calls are throttled at the lowest rate; 0 otherwise. */
  readonly strainedUs: number;
  readonly lastUs: number;
  /** The clock of Redis minus that of the fleet. */
  readonly skewUs: number;
  /** Redis's run id; if it changes, grants may be lost. */
  readonly runId: string;
  /** Times of each worker's last report and last failure. */
  readonly live: ReadonlyMap<string, number>;
  readonly failing: ReadonlyMap<string, number>;
  /** Workers that wait for tokens, and the end of the places of each rank. */
  readonly order: ReadonlyMap<string, Turn>;
  readonly booked: readonly number[];
}
