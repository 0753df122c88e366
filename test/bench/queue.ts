import { randomUUID } from "node:crypto";
import { obtainRedis } from "@konverge/infra-redis";
import { createWorkQueue } from "@konverge/queue";
import { Queue, Worker } from "bullmq";
import { contest, type BenchOptions, type Figure } from "./measure.ts";

const JOBS = 4_000;
const ROUNDS = 5;

/** No-op reconciles of different keys, from a full queue, against a bare BullMQ worker with plain jobs. */
export async function benchQueue({ log }: BenchOptions): Promise<Figure[]> {
  const redis = await obtainRedis({ log });
  try {
    const figures: Figure[] = [];
    for (const concurrency of [10, 50]) {
      figures.push(
        ...(await contest({
          suite: "queue",
          case: `no-op reconciles, ${concurrency} at a time`,
          metric: "rate",
          unit: "1/s",
          rounds: ROUNDS,
          ours: () => runOurs(redis.url, concurrency),
          peers: [
            { name: "bare BullMQ worker", goal: 0.4, side: () => runBare(redis.url, concurrency) },
          ],
        })),
      );
    }
    return figures;
  } finally {
    await redis.stop();
  }
}

async function runOurs(url: string, concurrency: number): Promise<number> {
  const queue = createWorkQueue({
    redis: { url },
    controller: "bench",
    cluster: "default",
    prefix: `bench-${randomUUID()}`,
  });
  const key = (n: number) => ({
    controller: "bench",
    cluster: "default",
    resource: "configmaps",
    group: "",
    namespace: "default",
    name: `object-${n}`,
  });
  for (let n = 0; n < JOBS; n += 200) {
    await Promise.all(
      Array.from({ length: 200 }, (_, i) => queue.request(key(n + i), { kind: "watch" })),
    );
  }
  const done = Promise.withResolvers<void>();
  let count = 0;
  const startedMs = performance.now();
  const worker = queue.work({
    workerId: "bench",
    concurrency,
    handle: async () => ({ outcome: { kind: "done" } }),
    onClosed: () => {
      count += 1;
      if (count === JOBS) done.resolve();
    },
    onError: (error) => done.reject(error),
  });
  await done.promise;
  const tookMs = performance.now() - startedMs;
  await worker.stop();
  await queue.close();
  return (JOBS * 1_000) / tookMs;
}

async function runBare(url: string, concurrency: number): Promise<number> {
  const name = `bare-${randomUUID()}`;
  const queue = new Queue(name, { connection: { url } });
  for (let n = 0; n < JOBS; n += 200) {
    await queue.addBulk(
      Array.from({ length: 200 }, (_, i) => ({
        name: "job",
        data: { key: `object-${n + i}` },
        opts: { removeOnComplete: true },
      })),
    );
  }
  const done = Promise.withResolvers<void>();
  let count = 0;
  const startedMs = performance.now();
  const worker = new Worker(name, async () => undefined, {
    connection: { url, maxRetriesPerRequest: null },
    concurrency,
  });
  worker.on("error", done.reject);
  worker.on("completed", () => {
    count += 1;
    if (count === JOBS) done.resolve();
  });
  await done.promise;
  const tookMs = performance.now() - startedMs;
  await worker.close();
  await queue.obliterate({ force: true });
  await queue.close();
  return (JOBS * 1_000) / tookMs;
}
