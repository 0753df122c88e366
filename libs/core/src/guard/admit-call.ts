/** How a cluster's breaker stands. `isolated` is open by a person's word, until a person resets it. */
export type BreakerMode = "closed" | "open" | "halfOpen" | "isolated";

/** Most tokens in one lease. */
export const MAX_LEASE = 64;

/** What a worker asks: its outcomes since the last time, and tokens. Counts are whole numbers. */
export interface AdmitRequest {
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
export interface AdmitResponse {
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
