/** The state of a cluster's breaker. `isolated`: opened by an operator, until an operator resets it. */
export type BreakerMode = "closed" | "open" | "halfOpen" | "isolated";

/** Most tokens in one lease. */
export const MAX_LEASE = 64;

/** Rank of a token request's class. Calls of events, users and started attempts are `ordinary`. */
export const TOKEN_RANK: {
  readonly critical: number;
  readonly ordinary: number;
  readonly retry: number;
  readonly resync: number;
} = { critical: 0, ordinary: 1, retry: 2, resync: 3 };

/** Largest share of the bucket that is withheld from the lowest class. */
export const LARGEST_FLOOR = 0.3;

/** Share of the bucket that each rank leaves to the ranks before it. */
export const FLOORS: readonly [number, number, number, number] = [0, 0, 0.15, LARGEST_FLOOR];

/** Constants of the fleet's order of token requests, also for the script. Times in microseconds. */
export const ORDER: {
  readonly ordinaryShare: number;
  readonly earlyShare: number;
  readonly idleShare: number;
  readonly longestUs: number;
  readonly graceUs: number;
  readonly rankStep: number;
} = {
  /** Share of `maxWaitMs` for which tokens are promised to ordinary classes. Critical calls are promised the rest, too. */
  ordinaryShare: 0.5,
  /** A worker asks again when its tokens are due in this share of the time for which tokens are promised. */
  earlyShare: 0.75,
  /** With this share of the bucket unused, the rate does not limit the fleet, so the order does not apply. */
  idleShare: 0.5,
  /** Longest time until a worker asks again: the rate may rise meanwhile. */
  longestUs: 20e6,
  /** A worker that is later than this loses its place. */
  graceUs: 1e6,
  /** Distance of two ranks in the scores of the order. */
  rankStep: 2 ** 41,
};

/** A token request with the results since the last one. Counts are integers. */
export interface AdmitRequest {
  readonly worker: string;
  readonly runId: string;
  /** `atUs` of the worker's last answer, and the time since that request by the worker's clock; 0 without an answer. */
  readonly answeredUs: number;
  readonly elapsedUs: number;
  /** Generation of the reported calls. */
  readonly generation: number;
  readonly ok: number;
  readonly failed: number;
  /** Failures after the last success of this report. */
  readonly trailing: number;
  readonly slow: number;
  readonly throttled: number;
  /** Older successes, reported only now: they do not end a series of failures. */
  readonly late: number;
  /** The longest Retry-After of the reported calls. */
  readonly retryAfterUs: number;
  /** The last failure, for example `timeout` or `HTTP 503`. */
  readonly failure?: string;
  /** Ticket and result of a finished probe; empty without one. */
  readonly ticket: string;
  readonly verdict: "" | "ok" | "failed" | "neutral";
  /** Requested tokens, and the useful minimum. */
  readonly want: number;
  readonly need: number;
  /** Rank of the class, see {@link TOKEN_RANK}. */
  readonly rank: number;
  /**
   * The place in the fleet's order: `none` if no call waits, `once` until tokens are granted, `again` if the worker will
   * soon request as many more.
   */
  readonly turn: "none" | "once" | "again";
  /** The ticket to grant if a probe is due; empty if this worker has no call for it. */
  readonly probe: string;
  /** Uniform in [0, 1), for the jitter of the open time. */
  readonly random: number;
}

/** The answer to a token request. */
export interface AdmitResponse {
  /** Time of the fleet's clock, which neither steps back nor jumps. */
  readonly atUs: number;
  readonly mode: BreakerMode;
  readonly generation: number;
  readonly granted: number;
  /** Delay until granted tokens are usable, or until the next request if none were granted. */
  readonly waitUs: number;
  /** Time until this worker's turn in the fleet's order; 0 if it has no place. */
  readonly turnUs: number;
  /** The ticket, if the granted call is the probe. */
  readonly ticket: string;
  readonly ratePerSecond: number;
  /** Lifetime of the granted tokens: the bucket has room for those of this lifetime. */
  readonly ttlMs: number;
  readonly live: number;
  /**
   * True if calls of the fleet failed lately or its rate is reduced: successes are reported without delay, because they
   * close the series of failures and restore the rate.
   */
  readonly reportsSoon: boolean;
}
