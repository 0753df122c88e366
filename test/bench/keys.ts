import { randomUUID } from "node:crypto";
import type { ObjectKey } from "@konverge/core";
import { createWorkQueue, type WorkQueue } from "@konverge/queue";
import { figureOf, type BenchOptions, type Figure } from "./measure.ts";
import { startOwnRedis } from "./own-redis.ts";

const SIZES = [10_000, 100_000];
const LONG_SIZES = [...SIZES, 1_000_000];
/** One of 10 keys waits. */
const SHARE_WAITING = 10;
const CONCURRENCY = 50;
const BATCH = 1_000;
const CONTROLLER = "bench";
const ACTION = { by: "bench", reason: "bench" };

/**
 * Measures operations on a queue with many keys at rest, a tenth of which then wait: the start of a worker, a pause, a
 * resume and a resync of all keys.
 */
export async function benchKeys({ log, long }: BenchOptions): Promise<Figure[]> {
  await using own = await startOwnRedis(log);
  const figures: Figure[] = [];
  for (const size of long ? LONG_SIZES : SIZES) {
    log(`keys: ${size} keys at rest`);
    await own.redis.flushall();
    const prefix = `bench-${randomUUID()}`;
    const open = () =>
      createWorkQueue({
        redis: { url: own.url },
        controller: CONTROLLER,
        cluster: "default",
        prefix,
      });
    figures.push(...(await measure(open, size)));
  }
  return figures;
}

async function measure(open: () => WorkQueue, size: number): Promise<Figure[]> {
  const waiting = size / SHARE_WAITING;
  const queue = open();
  const figure = (metric: string, unit: string, value: number) =>
    figureOf({
      suite: "keys",
      case: `${size} keys, ${waiting} waiting`,
      metric,
      unit,
      ours: [value],
    });
  const resyncMs = await timed(() => request(queue, size));
  const all = start(queue, size);
  const reconcileMs = await timed(() => all.done);
  await all.stop();
  await request(queue, waiting);
  const another = open();
  const startMs = await timed(() => firstAttempt(another));
  await request(queue, waiting);
  const pauseMs = await timed(() => queue.control.pause({ kind: "controller" }, ACTION));
  await parkAll(queue, waiting);
  const resumeMs = await timed(async () => {
    const { resumed } = await queue.control.resume({ kind: "controller" }, ACTION);
    if (resumed !== waiting) throw new Error(`${resumed} of ${waiting} keys were resumed`);
  });
  await another.close();
  await queue.close();
  return [
    figure("resync, per key", "us", (1_000 * resyncMs) / size),
    figure("reconcile, per key", "us", (1_000 * reconcileMs) / size),
    figure("start of a worker until its first attempt", "ms", startMs),
    figure("pause of the controller", "ms", pauseMs),
    figure("resume, per waiting key", "us", (1_000 * resumeMs) / waiting),
  ];
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

/** Requests the keys 0 to `count - 1`, as a leader does on a resync. */
async function request(queue: WorkQueue, count: number): Promise<void> {
  for (let from = 0; from < count; from += BATCH) {
    const length = Math.min(BATCH, count - from);
    const trigger = { kind: "resync" } as const;
    await Promise.all(Array.from({ length }, (_, n) => queue.submit(keyOf(from + n), trigger)));
  }
}

/** Starts a worker; `done` resolves when `count` attempts have ended. */
function start(queue: WorkQueue, count: number) {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let ended = 0;
  const worker = queue.work({
    workerId: "bench",
    concurrency: CONCURRENCY,
    handle: async () => ({ outcome: { kind: "done" } }),
    onClosed() {
      ended += 1;
      if (ended === count) resolve();
    },
    onError: reject,
  });
  return { done: promise, stop: () => worker.stop() };
}

async function firstAttempt(queue: WorkQueue): Promise<void> {
  const worker = start(queue, 1);
  await worker.done;
  await worker.stop();
}

/** Runs a worker that fetches all waiting keys, so that the pause parks them. */
async function parkAll(queue: WorkQueue, waiting: number): Promise<void> {
  const worker = start(queue, Infinity);
  const failure = worker.done;
  while ((await queue.backlog()).paused < waiting) {
    await Promise.race([failure, new Promise((resolve) => setTimeout(resolve, 20))]);
  }
  await worker.stop();
}

function keyOf(n: number): ObjectKey {
  return {
    controller: CONTROLLER,
    cluster: "default",
    resource: "configmaps",
    group: "",
    namespace: "default",
    name: `object-${n}`,
  };
}
