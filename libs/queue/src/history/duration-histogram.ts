/** Growth per bucket: a percentile is at most a tenth off. */
const GROWTH = 1.2;
const PREFIX = "duration.";

/** Returns the counter of a duration. Counters of several minutes can be added. */
export function durationCounter(ms: number): string {
  return `${PREFIX}${ms <= 1 ? 0 : Math.ceil(Math.log(ms) / Math.log(GROWTH))}`;
}

/** Returns a percentile of the durations that were counted, in ms; undefined without durations. */
export function durationQuantile(
  minutes: readonly Readonly<Record<string, number>>[],
  share: number,
): number | undefined {
  const buckets = new Map<number, number>();
  for (const counts of minutes) {
    for (const [name, count] of Object.entries(counts)) {
      if (!name.startsWith(PREFIX)) continue;
      const bucket = Number(name.slice(PREFIX.length));
      buckets.set(bucket, (buckets.get(bucket) ?? 0) + count);
    }
  }
  const sorted = [...buckets].toSorted(([one], [other]) => one - other);
  const total = sorted.reduce((sum, [, count]) => sum + count, 0);
  let left = Math.floor(total * share);
  for (const [bucket, count] of sorted) {
    if (left < count) return middleOf(bucket);
    left -= count;
  }
  return undefined;
}

/** The geometric mean of the bounds of a bucket. */
function middleOf(bucket: number): number {
  return bucket === 0 ? 1 : Math.round(GROWTH ** (bucket - 0.5));
}
