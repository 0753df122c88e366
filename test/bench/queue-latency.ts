import { figureOf, percentile, type Figure } from "./measure.ts";
import { openBare, openOurs, type QueueSide } from "./queue-sides.ts";

const REQUESTS = 300;
const ROUNDS = 5;

/** Measures from the enqueueing call to the first line of the handler, one at a time on an idle queue, next to bare BullMQ. */
export async function benchQueueLatency(url: string): Promise<Figure[]> {
  return await latenciesNextToBare(url, () => latencies(openOurs(url)), {
    suite: "queue",
    case: "one request at a time on an idle queue",
    metric: "enqueue to handler",
    peerName: "bare BullMQ",
    rounds: ROUNDS,
  });
}

/** Returns p50 and p99 in ms of `measure` and of a bare queue, in turn. The first round is a warm-up. */
export async function latenciesNextToBare(
  url: string,
  measure: () => Promise<number[]>,
  {
    metric,
    peerName,
    rounds,
    ...about
  }: Pick<Figure, "suite" | "case" | "metric"> & {
    readonly peerName: string;
    readonly rounds: number;
  },
): Promise<Figure[]> {
  const ours: number[][] = [];
  const bare: number[][] = [];
  for (let round = 0; round <= rounds; round++) {
    const mine = await measure();
    const theirs = await latencies(openBare(url));
    if (round === 0) continue;
    ours.push(mine);
    bare.push(theirs);
  }
  return [0.5, 0.99].map((share) => {
    const read = (values: readonly number[]) => 1_000 * percentile(values, share);
    return figureOf({
      ...about,
      metric: `${metric}, p${share * 100}`,
      unit: "us",
      ours: ours.map(read),
      peer: { name: peerName, values: bare.map(read) },
    });
  });
}

/** Returns the times in ms from the enqueueing call to the first line of the handler. */
async function latencies(side: QueueSide): Promise<number[]> {
  const values: number[] = [];
  let askedMs = 0;
  let ended = Promise.withResolvers<void>();
  const worker = side.work({
    concurrency: 1,
    onStart: () => values.push(performance.now() - askedMs),
    onEnd: () => ended.resolve(),
    onError: (error) => ended.reject(error),
  });
  for (let n = 0; n < REQUESTS; n++) {
    ended = Promise.withResolvers<void>();
    askedMs = performance.now();
    await side.add(n);
    await ended.promise;
  }
  await worker.stop();
  await side.close();
  // The first request waits for the worker's connections.
  return values.slice(1);
}
