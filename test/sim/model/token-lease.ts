import { bucketSize, type GuardLimits } from "@konverge/core";

export interface Lease {
  readonly granted: number;
  /** Delay until granted tokens are usable, or until the next request. */
  readonly waitUs: number;
  readonly tatUs: number;
}

/**
 * Takes a batch of tokens from a GCRA bucket, or promises one that is due within `maxWaitMs`. If every token is used
 * between `now + wait` and that plus its ttl, the uses in any window T number at most rate * T + burst, whatever the
 * number of workers and the delay of messages: schedule times obey rate * L + bucket in any interval L, and a use lies
 * at most one ttl after its schedule time. A promise must fit the bucket, or that breaks.
 */
export function leaseTokens(
  limits: GuardLimits,
  bucket: { readonly tatUs: number; readonly ratePerSecond: number },
  ask: {
    readonly nowUs: number;
    readonly want: number;
    readonly need: number;
    readonly floor: number;
  },
): Lease {
  const { nowUs, want, need } = ask;
  const size = bucketSize(limits);
  const intervalUs = 1e6 / bucket.ratePerSecond;
  // An idle bucket does not exceed its capacity.
  const tatUs = Math.max(bucket.tatUs, nowUs);
  const floor = ask.floor * size;
  const level = (nowUs + size * intervalUs - tatUs) / intervalUs - floor;
  if (level >= need) {
    const granted = Math.min(want, Math.floor(level));
    return { granted, waitUs: 0, tatUs: Math.ceil(tatUs + granted * intervalUs) };
  }
  // At most the lifetime of a token, so that workers alternate and the first does not wait for the last.
  const stretch = Math.max(need, Math.floor((limits.tokenTtlMs * 1_000) / intervalUs));
  const promised = Math.min(want, stretch, Math.floor(size - floor));
  const waitUs = Math.ceil((promised - level) * intervalUs);
  if (promised >= need && waitUs <= limits.maxWaitMs * 1_000) {
    return { granted: promised, waitUs, tatUs: Math.ceil(tatUs + promised * intervalUs) };
  }
  // All near tokens are promised to others: retry after half of that time.
  const againUs = Math.ceil((need - level) * intervalUs) - limits.maxWaitMs * 500;
  return { granted: 0, waitUs: Math.max(1_000, againUs), tatUs };
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
