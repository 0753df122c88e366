import type { BreakerMode } from "@konverge/core";

/**
 * What the fleet knows about one API server. Times are microseconds of one clock, Redis's. The reference model of the
 * script `admit`: both go from state to state alike, field by field.
 */
export interface GuardState {
  readonly mode: BreakerMode;
  /** One more at each transition; reports of another generation do not count. */
  readonly generation: number;
  /** Open until then. */
  readonly untilUs: number;
  /** Openings in a row, each longer than the last. */
  readonly openings: number;
  readonly closedUs: number;
  /** The one probe that may be on its way; empty when there is none. */
  readonly ticket: string;
  readonly ticketUntilUs: number;
  /** Calls, of them failures, slow ones and 429s: decaying counts. */
  readonly total: number;
  readonly failed: number;
  readonly slow: number;
  readonly throttled: number;
  readonly windowUs: number;
  /** Failures since the last success, over the whole fleet. */
  readonly consecutive: number;
  /** When the bucket would be full again (GCRA's theoretical arrival time). */
  readonly tatUs: number;
  /** When the last promised token is due. */
  readonly promisedUs: number;
  /** The adaptive rate. */
  readonly ratePerSecond: number;
  readonly cutUs: number;
  readonly raisedUs: number;
  /** Told to wait by the server (Retry-After). */
  readonly pausedUntilUs: number;
  /** Since when the server refuses half of the calls at the lowest rate; 0 when it does not. */
  readonly strainedUs: number;
  readonly lastUs: number;
  /** Redis's run id; another one means that grants may be forgotten. */
  readonly runId: string;
  /** Workers by when they last reported an outcome, and a failure. */
  readonly live: ReadonlyMap<string, number>;
  readonly failing: ReadonlyMap<string, number>;
}
