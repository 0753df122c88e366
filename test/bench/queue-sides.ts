import { randomUUID } from "node:crypto";
import { defined, type ObjectKey, type Trigger } from "@konverge/core";
import { createWorkQueue } from "@konverge/queue";
import { Queue, Worker } from "bullmq";

/** A queue under measurement: Konverge's, or BullMQ alone with plain jobs. Its jobs do nothing. */
export interface QueueSide {
  readonly name: string;
  /** Resolves when the `n`-th job is acknowledged. */
  add(n: number): Promise<void>;
  /** Calls `onStart` in the handler and `onEnd` when the job is finished. */
  work(options: WorkSideOptions): { stop(): Promise<void> };
  close(): Promise<void>;
}

interface WorkSideOptions {
  readonly concurrency: number;
  readonly onStart: () => void;
  readonly onEnd: () => void;
  readonly onError: (error: Error) => void;
}

const CONTROLLER = "bench";

/** The content of requests and attempts. Default: the shortest, like the plain jobs of the peer. */
export interface Content {
  readonly trigger: Trigger;
  readonly record?: string;
}

export function openOurs(
  url: string,
  { trigger, record }: Content = { trigger: { kind: "watch" } },
): QueueSide {
  const queue = createWorkQueue({
    redis: { url },
    controller: CONTROLLER,
    cluster: "default",
    prefix: `bench-${randomUUID()}`,
  });
  return {
    name: "ours",
    async add(n) {
      await queue.request(keyOf(n), trigger);
    },
    work: ({ concurrency, onStart, onEnd, onError }) =>
      queue.work({
        workerId: "bench",
        concurrency,
        async handle() {
          onStart();
          return { outcome: { kind: "done" }, ...defined({ record }) };
        },
        onClosed: onEnd,
        onError,
      }),
    close: () => queue.close(),
  };
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

export function openBare(url: string): QueueSide {
  const name = `bare-${randomUUID()}`;
  const queue = new Queue(name, { connection: { url } });
  return {
    name: "bare BullMQ",
    async add(n) {
      await queue.add("job", { key: `object-${n}` }, { removeOnComplete: true });
    },
    work({ concurrency, onStart, onEnd, onError }) {
      const worker = new Worker(
        name,
        async () => {
          onStart();
        },
        { connection: { url, maxRetriesPerRequest: null }, concurrency },
      );
      worker.on("error", onError);
      worker.on("completed", onEnd);
      return { stop: () => worker.close() };
    },
    close: () => queue.close(),
  };
}

const ADDED_AT_ONCE = 200;

/** Adds the jobs `from` to `from + count - 1`, many at a time. */
export async function addMany(side: QueueSide, from: number, count: number): Promise<void> {
  let next = from;
  await Promise.all(
    Array.from({ length: ADDED_AT_ONCE }, async () => {
      while (next < from + count) await side.add(next++);
    }),
  );
}

export interface Taken {
  /** Time from the worker's start to the end of the last job. */
  readonly tookMs: number;
  /** Time from the first handler to the last, without the worker's start. */
  readonly handledMs: number;
  /** All fetched jobs. A worker fetches some more before it stops. */
  readonly count: number;
}

/** Starts a worker and stops it when `count` jobs are done. */
export async function takeMany(
  side: QueueSide,
  count: number,
  concurrency: number,
): Promise<Taken> {
  const done = Promise.withResolvers<void>();
  const started: number[] = [];
  let ended = 0;
  const startedMs = performance.now();
  const worker = side.work({
    concurrency,
    onStart: () => started.push(performance.now()),
    onEnd: () => {
      ended += 1;
      if (ended === count) done.resolve();
    },
    onError: done.reject,
  });
  await done.promise;
  const tookMs = performance.now() - startedMs;
  await worker.stop();
  const handledMs = (started[count - 1] ?? Number.NaN) - (started[0] ?? Number.NaN);
  return { tookMs, handledMs, count: started.length };
}
