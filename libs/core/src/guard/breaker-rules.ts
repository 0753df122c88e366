/** Constants of the breaker and of the adaptive rate; the script gets them from here. Times in microseconds. */
export const BREAKER: {
  readonly windowUs: number;
  readonly quorumUs: number;
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
  readonly clockStepUs: number;
} = {
  /** Time constant of the decaying counts. */
  windowUs: 5e6,
  /** A worker counts as live, or as failing, for so long after it said so. */
  quorumUs: 10e6,
  /** The fast rule. After a long healthy time shares alone are slow. */
  consecutive: 12,
  minCalls: 20,
  failedShare: 0.5,
  /** Nearly everything slow, and a fifth of it failing. */
  slowShare: 0.8,
  slowFailedShare: 0.2,
  /** Half of the calls answered 429, at the lowest rate, for so long. */
  strainedShare: 0.5,
  strainedUs: 30e6,
  openUs: 1e6,
  /** One probe of the whole fleet each 5 s costs nothing; a longer pause only finds out later (docs/decisions/0004). */
  maxOpenUs: 5e6,
  /** When to ask again about an isolated server. */
  isolatedUs: 30e6,
  /** Closed for less than this, the next opening is longer. */
  calmUs: 10e6,
  /** A probe's deadline of 5 s, and one more for its report. */
  ticketUs: 6e6,
  /** Share of the full rate after an outage. */
  restartShare: 0.2,
  cutFactor: 0.7,
  cutEveryUs: 1e6,
  /** Fewer failures than this do not cut the rate: a server that answers one call in a hundred with 500 is not overloaded. */
  cutFailedShare: 0.1,
  /** Of the full rate, won back per second. */
  raiseShare: 0.1,
  /** A clock that steps back by more is believed, and the bucket emptied; by less, it stands still. */
  clockStepUs: 5e6,
};

/** Why the breaker opens, in the words of the log; undefined when it stays closed. */
export type OpeningReason = "consecutive" | "failedShare" | "slow" | "strained";
