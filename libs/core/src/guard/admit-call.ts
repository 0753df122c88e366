/** The state of a cluster's breaker. `isolated`: opened by an operator, until an operator resets it. */
export type BreakerMode = "closed" | "open" | "halfOpen" | "isolated";

/** Most tokens in one lease. */
export const MAX_LEASE = 64;

/** A token request with the results since the last one. Counts are integers. */
export interface AdmitRequest {
  readonly worker: string;
  readonly runId: string;
  /** Generation of the reported calls. */
  readonly generation: number;
  readonly ok: number;
  readonly failed: number;
  /** Failures after the last success of this report. */
  readonly trailing: number;
  readonly slow: number;
  readonly throttled: number;
  /** The longest Retry-After of the reported calls. */
  readonly retryAfterUs: number;
  /** Ticket and result of a finished probe; empty without one. */
  readonly ticket: string;
  readonly verdict: "" | "ok" | "failed" | "neutral";
  /** Requested tokens, and the useful minimum. */
  readonly want: number;
  readonly need: number;
  /** Share of the bucket that is reserved for higher classes. */
  readonly floor: number;
  /** The ticket to grant if a probe is due; empty if this worker has no call for it. */
  readonly probe: string;
  /** Uniform in [0, 1), for the jitter of the open time. */
  readonly random: number;
}

/** The answer to a token request. */
export interface AdmitResponse {
  readonly mode: BreakerMode;
  readonly generation: number;
  readonly granted: number;
  /** Delay until granted tokens are usable, or until the next request if none were granted. */
  readonly waitUs: number;
  /** The ticket, if the granted call is the probe. */
  readonly ticket: string;
  readonly ratePerSecond: number;
  readonly live: number;
}
