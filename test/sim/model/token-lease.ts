import { bucketSize, type GuardLimits } from "@konverge/core";

export interface Lease {
  readonly granted: number;
  /** Granted: usable after so long. Not granted: ask again after so long. */
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
  // An idle bucket is full, not fuller.
  const tatUs = Math.max(bucket.tatUs, nowUs);
  const floor = ask.floor * size;
  const level = (nowUs + size * intervalUs - tatUs) / intervalUs - floor;
  if (level >= need) {
    const granted = Math.min(want, Math.floor(level));
    return { granted, waitUs: 0, tatUs: Math.ceil(tatUs + granted * intervalUs) };
  }
  // No longer a stretch than a token lives, so that workers take turns and the first need not wait for the last.
  const stretch = Math.max(need, Math.floor((limits.tokenTtlMs * 1_000) / intervalUs));
  const promised = Math.min(want, stretch, Math.floor(size - floor));
  const waitUs = Math.ceil((promised - level) * intervalUs);
  if (promised >= need && waitUs <= limits.maxWaitMs * 1_000) {
    return { granted: promised, waitUs, tatUs: Math.ceil(tatUs + promised * intervalUs) };
  }
  // Others are promised all of the near future: ask again when half of that has passed.
  const againUs = Math.ceil((need - level) * intervalUs) - limits.maxWaitMs * 500;
  return { granted: 0, waitUs: Math.max(1_000, againUs), tatUs };
}

/** When a bucket that was emptied now is full again: nobody may start with a burst that others may have spent. */
export function emptiedTat(limits: GuardLimits, ratePerSecond: number, nowUs: number): number {
  return Math.ceil(nowUs + (bucketSize(limits) * 1e6) / ratePerSecond);
}

/**
 * The bucket's time after a change of its rate: it holds as many tokens as before. A cut that left the debt in time alone
 * would mint tokens, since with a longer interval it is fewer of them; a raise that did would take tokens away. A raise
 * counts from when the last promise is due: until then the bucket was promised to fill at the old rate.
 */
export function rescaledTat(
  { tatUs, promisedUs }: { readonly tatUs: number; readonly promisedUs: number },
  nowUs: number,
  { from, to }: { readonly from: number; readonly to: number },
): number {
  const sinceUs = to > from ? Math.max(nowUs, promisedUs) : nowUs;
  return Math.ceil(sinceUs + (Math.max(0, tatUs - sinceUs) * from) / to);
}
