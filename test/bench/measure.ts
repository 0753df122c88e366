/** One figure of Konverge and, if there is one, of its peer, measured in turn in the same run. */
export interface Figure {
  readonly suite: string;
  readonly case: string;
  readonly metric: string;
  readonly unit: string;
  readonly ours: number;
  readonly peer: number | null;
  readonly peerName: string | null;
  /** ours / peer, the median over the rounds. Compare ratios, because machines are noisy. */
  readonly ratio: number | null;
  /** The minimum of the ratio; the maximum if the figure is a cost. */
  readonly goal: number | null;
  readonly ok: boolean;
}

/** The options of a run, passed to every suite. */
export interface BenchOptions {
  readonly log: (line: string) => void;
  /** The number of objects that the suite `controller` changes. */
  readonly objects: number;
  /** Selects arms by parts of their names; empty selects all. `memory` compares whole sizes, `workflow-peers` always runs Konverge. */
  readonly arms: readonly string[];
  /** Also runs the largest sizes. */
  readonly long: boolean;
}

/** Runs one side once and returns its figure, usually operations per second. */
type Side = () => Promise<number>;

export interface Contest {
  readonly suite: string;
  readonly case: string;
  readonly metric: string;
  readonly unit: string;
  readonly ours: Side;
  readonly peers: readonly { readonly name: string; readonly side: Side; readonly goal: number }[];
  readonly rounds: number;
  /** Whether the goals are minimums or maximums. Default: minimums. */
  readonly goalIs?: "least" | "most";
}

/** Returns true if the name contains one of the texts, or if there are no texts. */
export function isWanted(name: string, texts: readonly string[]): boolean {
  return texts.length === 0 || texts.some((text) => name.includes(text));
}

/** Runs all sides in turn, round by round. The first round is a warm-up and is left out. */
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
  const { suite, metric, unit, goalIs = "least" } = options;
  return peers.map(({ name, goal }, index) =>
    figureOf({
      suite,
      case: options.case,
      metric,
      unit,
      goal,
      goalIs,
      ours: mine,
      peer: { name, values: theirs[index] ?? [] },
    }),
  );
}

export interface Measured extends Pick<Figure, "suite" | "case" | "metric" | "unit"> {
  /** One value per round. */
  readonly ours: readonly number[];
  /** The peer's values of the same rounds; a slow peer may have only the first ones. */
  readonly peer?: { readonly name: string; readonly values: readonly number[] };
  /** The goal of the ratio if there is a peer, otherwise of our value. Default: none. */
  readonly goal?: number | null;
  /** Whether the goal is a minimum or a maximum. Default: a minimum. */
  readonly goalIs?: "least" | "most";
}

/** Returns the medians over the rounds, and the median of the rounds' ratios. */
export function figureOf({ ours, peer, goal = null, goalIs = "least", ...what }: Measured): Figure {
  const values = peer?.values ?? [];
  const ratio =
    peer === undefined
      ? null
      : round2(median(values.map((value, round) => (ours[round] ?? Number.NaN) / value)));
  const judged = ratio ?? round2(median(ours));
  return {
    ...what,
    ours: round2(median(ours)),
    peer: peer === undefined ? null : round2(median(values)),
    peerName: peer?.name ?? null,
    ratio,
    goal,
    ok: goal === null || (goalIs === "least" ? judged >= goal : judged <= goal),
  };
}

/** Returns the operations per second of `count` runs of `operation`, `width` at a time. */
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

/** Returns a quantile: 0.5 is the median, 0.99 the value that the slowest hundredth exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

export function round2(value: number): number {
  return Math.round(value * 100) / 100;
}
