import { BREAKER, bucketSize, FLOORS, ORDER, TOKEN_RANK, type GuardLimits } from "@konverge/core";

export interface Lease {
  readonly granted: number;
  /** Delay until granted tokens are usable. */
  readonly waitUs: number;
  readonly tatUs: number;
  /** Tokens of one turn. */
  readonly amount: number;
  /** Tokens that are left for this class; negative if tokens are promised. */
  readonly level: number;
}

interface LeaseAsk {
  readonly nowUs: number;
  readonly want: number;
  readonly need: number;
  readonly rank: number;
  /** Most tokens that are usable at once: one worker must not hold those that others need. Default `want`. */
  readonly most?: number;
}

/** The fleet's order, as a request finds it. */
interface Queue {
  /** Tokens of the workers before this one. */
  readonly ahead: number;
  readonly isContended: boolean;
}

/**
 * Takes a batch of tokens from a GCRA bucket, or promises one that is due soon. If every token is used between `now + wait`
 * and that plus its ttl, the uses in any window T number at most rate * T + burst, whatever the number of workers and the
 * delay of messages: schedule times obey rate * L + bucket in any interval L, and a use lies at most one ttl after its
 * schedule time. A promise must fit the bucket, or that breaks. Enough tokens remain for the workers before this one.
 */
export function leaseTokens(
  limits: GuardLimits,
  bucket: { readonly tatUs: number; readonly ratePerSecond: number },
  ask: LeaseAsk,
  { ahead, isContended }: Queue = { ahead: 0, isContended: false },
): Lease {
  const { nowUs, want, need, rank, most = want } = ask;
  const size = bucketSize(limits);
  const intervalUs = 1e6 / bucket.ratePerSecond;
  // An idle bucket does not exceed its capacity.
  const tatUs = Math.max(bucket.tatUs, nowUs);
  const floor = (FLOORS[rank] ?? 0) * size;
  const level = (nowUs + size * intervalUs - tatUs) / intervalUs - floor;
  // At most the lifetime of a token, so that workers alternate and the first does not wait for the last.
  const stretch = Math.max(need, Math.floor((limits.tokenTtlMs * 1_000) / intervalUs));
  const amount = Math.min(want, stretch, Math.floor(size - floor));
  const grant = (granted: number, waitUs: number) => {
    const after = Math.ceil(tatUs + granted * intervalUs);
    return { granted, waitUs, tatUs: after, amount, level: level - granted };
  };
  if (level >= Math.max(need, ORDER.idleShare * size)) {
    return grant(Math.min(most, Math.floor(level)), 0);
  }
  if (level - ahead >= need) {
    const turn = isContended ? Math.min(most, stretch) : most;
    return grant(Math.min(turn, Math.floor(level - ahead)), 0);
  }
  const dueUs = Math.ceil((amount - level) * intervalUs);
  const aheadUs = Math.ceil(ahead * intervalUs);
  if (amount >= need && dueUs + aheadUs <= horizonUs(limits, rank)) {
    return grant(amount, Math.max(0, dueUs));
  }
  return { granted: 0, waitUs: 0, tatUs, amount, level };
}

/** Returns the time for which tokens are promised ahead. */
function horizonUs({ maxWaitMs }: GuardLimits, rank: number): number {
  return maxWaitMs * 1_000 * (rank === TOKEN_RANK.critical ? 1 : ORDER.ordinaryShare);
}

/** Returns the time until `amount` tokens, after those of the workers before, are about to be promised. */
export function turnUs(
  limits: GuardLimits,
  ratePerSecond: number,
  turn: Pick<Lease, "amount" | "level"> & { readonly ahead: number; readonly rank: number },
): number {
  const { ahead, amount, level, rank } = turn;
  const dueUs = restoringUs(limits, ratePerSecond, ahead + amount - level);
  const earlyUs = Math.floor(horizonUs(limits, rank) * ORDER.earlyShare);
  return Math.min(ORDER.longestUs, Math.max(1_000, dueUs - earlyUs));
}

/**
 * Returns the time in which this many tokens become due while a reduced rate is restored. With the current rate, the workers of
 * a large fleet would return only when the rate has long been restored, and leave it unused.
 */
function restoringUs(limits: GuardLimits, ratePerSecond: number, tokens: number): number {
  const most = limits.ratePerSecond;
  const raise = BREAKER.raiseShare * most;
  const restoredS = (most - ratePerSecond) / raise;
  const restoring = ((ratePerSecond + most) / 2) * restoredS;
  const seconds =
    tokens >= restoring
      ? restoredS + (tokens - restoring) / most
      : (Math.sqrt(ratePerSecond * ratePerSecond + 2 * raise * Math.max(0, tokens)) -
          ratePerSecond) /
        raise;
  return Math.ceil(seconds * 1e6);
}

/** Returns the time at which a bucket emptied now is full again: a burst may already have been used. */
export function emptiedTat(limits: GuardLimits, ratePerSecond: number, nowUs: number): number {
  return Math.ceil(nowUs + (bucketSize(limits) * 1e6) / ratePerSecond);
}

/**
 * Returns the bucket's time after a change of its rate, with the same number of tokens. Keeping the debt in time would create
 * tokens in a cut, because the interval is longer, and remove tokens in a raise. A raise applies from the last promised
 * token on: until then the bucket fills at the old rate.
 */
export function rescaledTat(
  { tatUs, promisedUs }: { readonly tatUs: number; readonly promisedUs: number },
  nowUs: number,
  { from, to }: { readonly from: number; readonly to: number },
): number {
  const sinceUs = to > from ? Math.max(nowUs, promisedUs) : nowUs;
  return Math.ceil(sinceUs + (Math.max(0, tatUs - sinceUs) * from) / to);
}
