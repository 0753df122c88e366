/** How a cluster's breaker stands. `isolated` is open by a person's word, until a person resets it. */
export type BreakerMode = "closed" | "open" | "halfOpen" | "isolated";

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

/** What a worker asks: its outcomes since the last time, and tokens. Counts are whole numbers. */
export interface AdmitAsk {
  readonly worker: string;
  readonly runId: string;
  /** Under which the reported calls were granted. */
  readonly generation: number;
  readonly ok: number;
  readonly failed: number;
  /** Failures after the last success of this report. */
  readonly trailing: number;
  readonly slow: number;
  readonly throttled: number;
  /** The longest Retry-After among them. */
  readonly retryAfterUs: number;
  /** A finished probe's ticket, and how it ended; empty when none is reported. */
  readonly ticket: string;
  readonly verdict: "" | "ok" | "failed" | "neutral";
  /** Tokens asked for, and the fewest that are of use. */
  readonly want: number;
  readonly need: number;
  /** Share of the bucket that this class leaves to higher ones. */
  readonly floor: number;
  /** The ticket to hand out if a probe is due; empty when this worker has no call that may be one. */
  readonly probe: string;
  /** Uniform in [0, 1), for the jitter of the open time. */
  readonly random: number;
}

/** What the guard answers. */
export interface AdmitAnswer {
  readonly mode: BreakerMode;
  readonly generation: number;
  readonly granted: number;
  /** Granted tokens may be used after so long; when none was granted, ask again after so long. */
  readonly waitUs: number;
  /** The ticket, when the one granted call is the probe. */
  readonly ticket: string;
  readonly ratePerSecond: number;
  readonly live: number;
}
