import { contest, type BenchOptions, type Figure } from "./measure.ts";
import { startOwnRedis } from "./own-redis.ts";
import { benchQueueCost } from "./queue-cost.ts";
import { benchQueueGrowth } from "./queue-growth.ts";
import { benchQueueLatency } from "./queue-latency.ts";
import { addMany, openBare, openOurs, takeMany, type QueueSide } from "./queue-sides.ts";

const JOBS = 4_000;
const ROUNDS = 5;

/** Measures speed, latency, cost and growth of the queue without handlers, next to bare BullMQ with plain jobs where possible. */
export async function benchQueue({ log, long }: BenchOptions): Promise<Figure[]> {
  await using own = await startOwnRedis(log);
  return [
    ...(await benchThroughput(own.url)),
    ...(await benchQueueLatency(own.url)),
    ...(await benchQueueCost(own)),
    ...(await benchQueueGrowth(own, { long, log })),
  ];
}

/** Measures no-op reconciles of different keys from a full queue. */
async function benchThroughput(url: string): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const concurrency of [1, 10, 50]) {
    figures.push(
      ...(await contest({
        suite: "queue",
        case: `no-op reconciles, ${concurrency} at a time`,
        metric: "rate",
        unit: "1/s",
        rounds: ROUNDS,
        ours: () => drain(openOurs(url), concurrency),
        peers: [
          { name: "bare BullMQ worker", goal: 0.6, side: () => drain(openBare(url), concurrency) },
        ],
      })),
    );
  }
  return figures;
}

async function drain(side: QueueSide, concurrency: number): Promise<number> {
  await addMany(side, 0, JOBS);
  const { tookMs } = await takeMany(side, JOBS, concurrency);
  await side.close();
  return (JOBS * 1_000) / tookMs;
}
