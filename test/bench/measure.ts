/** One figure: ours, and where there is one the peer's, measured in turn in the same run. */
export interface Figure {
  readonly suite: string;
  readonly case: string;
  readonly metric: string;
  readonly unit: string;
  readonly ours: number;
  readonly peer: number | null;
  readonly peerName: string | null;
  /** ours / peer, the median over the rounds; machines are noisy, so ratios are what counts. */
  readonly ratio: number | null;
  /** Least ratio that is good enough; of a cost, the most. */
  readonly goal: number | null;
  readonly ok: boolean;
}

/** What a suite is asked for. */
export interface BenchOptions {
  readonly log: (line: string) => void;
  /** How many objects the suite `controller` changes. */
  readonly objects: number;
  /** The largest sizes too. */
  readonly long: boolean;
}

/** Runs one side once and returns operations per second. */
type Side = () => Promise<number>;

export interface Contest {
  readonly suite: string;
  readonly case: string;
  readonly metric: string;
  readonly unit: string;
  readonly ours: Side;
  readonly peers: readonly { readonly name: string; readonly side: Side; readonly goal: number }[];
  readonly rounds: number;
}

/** All sides in turn, round by round; the first round warms up and is left out. */
export async function contest(options: Contest): Promise<Figure[]> {
  const { ours, peers, rounds } = options;
  const mine: number[] = [];
  const theirs = peers.map((): number[] => []);
  for (let round = 0; round <= rounds; round++) {
    const own = await ours();
    if (round > 0) mine.push(own);
    for (const [index, { side }] of peers.entries()) {
      const other = await side();
      if (round > 0) theirs[index]?.push(other);
    }
  }
  const { suite, metric, unit } = options;
  return peers.map(({ name, goal }, index) => {
    const peer = theirs[index] ?? [];
    const ratio = round2(median(mine.map((value, round) => value / (peer[round] ?? Number.NaN))));
    return {
      suite,
      case: options.case,
      metric,
      unit,
      ours: round2(median(mine)),
      peer: round2(median(peer)),
      peerName: name,
      ratio,
      goal,
      ok: ratio >= goal,
    };
  });
}

/** Operations per second of `count` runs of `operation`, `width` at a time. */
export async function rateOf(
  count: number,
  width: number,
  operation: (lane: number, index: number) => Promise<unknown>,
): Promise<number> {
  let next = 0;
  const startedMs = performance.now();
  await Promise.all(
    Array.from({ length: width }, async (_, lane) => {
      while (next < count) await operation(lane, next++);
    }),
  );
  return (count * 1_000) / (performance.now() - startedMs);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The value that `share` of all are at most: 0.5 is the median of many, 0.99 the slowest hundredth. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

export function round2(value: number): number {
  return Math.round(value * 100) / 100;
}
