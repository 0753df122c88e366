import { figureOf, percentile, type Figure } from "./measure.ts";
import type { OwnRedis } from "./own-redis.ts";
import { addMany, openOurs, takeMany, type QueueSide } from "./queue-sides.ts";

const SMALL = 1_000;
const SIZES = [10_000, 100_000];
const LONG_SIZES = [...SIZES, 1_000_000];
/** Requests added and fetched in sequence in one turn. */
const BATCH = 200;
const TURNS = 7;
const MOST_RATIO = 1.5;

/**
 * Measures how much slower requests and fetches are when many keys wait. A small and a large queue in one Redis take turns,
 * so that both run under the same conditions.
 */
export async function benchQueueGrowth(
  own: OwnRedis,
  { long, log }: { readonly long: boolean; readonly log: (line: string) => void },
): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const size of long ? LONG_SIZES : SIZES) {
    log(`queue: with ${size} waiting keys next to ${SMALL}`);
    await own.redis.flushall();
    const small = await fill(openOurs(own.url), SMALL);
    const large = await fill(openOurs(own.url), size);
    const times = { small: emptyTimes(), large: emptyTimes() };
    for (let turn = 0; turn <= TURNS; turn++) {
      await takeTurn(small, turn === 0 ? emptyTimes() : times.small);
      await takeTurn(large, turn === 0 ? emptyTimes() : times.large);
    }
    for (const metric of ["request", "fetch"] as const) {
      figures.push(
        figureOf({
          suite: "queue",
          case: `${size} waiting keys`,
          metric: `${metric}, one at a time`,
          unit: "us",
          ours: times.large[metric],
          peer: { name: `ours with ${SMALL} waiting keys`, values: times.small[metric] },
          goal: MOST_RATIO,
          goalIs: "most",
        }),
      );
    }
    await small.side.close();
    await large.side.close();
  }
  return figures;
}

interface Filled {
  readonly side: QueueSide;
  /** The next key that was never requested. */
  next: number;
}

interface Times {
  /** Times of one operation in us: the median of a turn, and its mean. */
  readonly request: number[];
  readonly fetch: number[];
}

const emptyTimes = (): Times => ({ request: [], fetch: [] });

async function fill(side: QueueSide, size: number): Promise<Filled> {
  await addMany(side, 0, size);
  return { side, next: size };
}

/** Adds a batch and fetches as many, so that the length of the queue does not change. */
async function takeTurn(filled: Filled, times: Times): Promise<void> {
  const tookMs: number[] = [];
  for (let n = 0; n < BATCH; n++) {
    const startedMs = performance.now();
    await filled.side.add(filled.next++);
    tookMs.push(performance.now() - startedMs);
  }
  times.request.push(1_000 * percentile(tookMs, 0.5));
  const { handledMs, count } = await takeMany(filled.side, BATCH, 1);
  times.fetch.push((1_000 * handledMs) / (BATCH - 1));
  if (count > BATCH) {
    await addMany(filled.side, filled.next, count - BATCH);
    filled.next += count - BATCH;
  }
}
