import {
  Queue,
  Worker,
  type Job,
  type JobsOptions,
  type QueueOptions,
  type WorkerOptions,
} from "bullmq";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll } from "vitest";
import { until } from "../support/until.ts";

/** Job data; `v` identifies the request. */
export interface Payload {
  readonly v: unknown;
}

export interface Run {
  readonly id: string | undefined;
  readonly v: unknown;
  readonly attemptsMade: number;
  readonly atMs: number;
  endMs?: number;
}

/** A BullMQ worker that records its runs. */
interface Seen {
  readonly worker: Worker<Payload>;
  readonly runs: Run[];
  readonly errors: string[];
}

type Handler = (
  job: Job<Payload>,
  token: string | undefined,
  seen: Seen,
  signal: AbortSignal | undefined,
) => unknown;

export interface Bull {
  readonly url: string;
  readonly redis: Redis;
  /** The queue of the running test; name and keys are new for each test. */
  readonly prefix: string;
  readonly name: string;
  readonly queue: Queue<Payload>;
  /** Another Queue object on the same queue. */
  open(options?: Partial<QueueOptions>): Queue<Payload>;
  work(handle: Handler, options?: Partial<WorkerOptions>): Seen;
  /** Adds a job like the requester: one key, the last add kept while active, delayed jobs rescheduled. */
  ask(v: unknown, options?: JobsOptions): Promise<Job<Payload>>;
  /** All runs of the test's workers, in order of their start. */
  readonly runs: readonly Run[];
  /** Maximum of concurrent runs. */
  mostAtOnce(): number;
  /** Remaining deduplication keys: `de:<id>` and `dn:<id>`. */
  dedupKeys(): Promise<string[]>;
  /** Resolves when no job waits, runs or is delayed. */
  quiet(): Promise<void>;
  key(suffix: string): string;
}

export const KEY = "a";

/** The options of requests. Retries are immediate unless a test overrides that. */
export const DEDUPED: JobsOptions = {
  deduplication: { id: KEY, keepLastIfActive: true, reschedule: true },
  priority: 5,
  attempts: Number.MAX_SAFE_INTEGER,
  backoff: { type: "custom" },
};

/** A real Redis with a separate queue for each test, deleted after the test. */
export function useBull(): Bull {
  const url = process.env["REDIS_URL"] ?? "";
  let redis: Redis | undefined;
  let serial = 0;
  let prefix = "";
  let first: Queue<Payload> | undefined;
  const queues: Queue<Payload>[] = [];
  const workers: Seen[] = [];
  const connection = () => {
    if (redis === undefined) throw new Error("Redis is not started yet");
    return redis;
  };

  beforeAll(() => {
    redis = new Redis(url);
    prefix = `contract-${process.pid}-${Date.now()}-${serial++}`;
  });
  afterEach(async () => {
    await Promise.all(workers.splice(0).map(({ worker }) => worker.close(true)));
    await Promise.all(queues.splice(0).map((queue) => queue.close()));
    first = undefined;
    for await (const keys of connection().scanStream({ match: `${prefix}:*`, count: 1_000 })) {
      if (keys.length > 0) await connection().unlink(...(keys as string[]));
    }
    prefix = `contract-${process.pid}-${Date.now()}-${serial++}`;
  });
  afterAll(() => redis?.quit());

  const bull: Bull = {
    url,
    name: "q",
    get redis() {
      return connection();
    },
    get prefix() {
      return prefix;
    },
    get queue() {
      first ??= bull.open();
      return first;
    },
    open(options = {}) {
      const queue = new Queue<Payload>(bull.name, { connection: { url }, prefix, ...options });
      queues.push(queue);
      return queue;
    },
    work(handle, options = {}) {
      const runs: Run[] = [];
      const errors: string[] = [];
      const { promise, resolve } = Promise.withResolvers<Seen>();
      const worker = new Worker<Payload>(
        bull.name,
        // BullMQ creates a signal only for a processor with three declared parameters.
        async (job, token, signal) => {
          const run: Run = {
            id: job.id,
            v: job.data.v,
            attemptsMade: job.attemptsMade,
            atMs: performance.now(),
          };
          runs.push(run);
          try {
            return await handle(job, token, await promise, signal);
          } finally {
            run.endMs = performance.now();
          }
        },
        {
          connection: { url, maxRetriesPerRequest: null },
          prefix,
          removeOnComplete: { count: 1_000 },
          maxStalledCount: 1_000_000_000,
          settings: { backoffStrategy: () => 1 },
          ...options,
        },
      );
      worker.on("error", (error) => errors.push(error.message));
      const seen: Seen = { worker, runs, errors };
      workers.push(seen);
      resolve(seen);
      return seen;
    },
    ask: (v, options = {}) => bull.queue.add("job", { v }, { ...DEDUPED, ...options }),
    get runs() {
      return workers.flatMap(({ runs }) => runs).toSorted((a, b) => a.atMs - b.atMs);
    },
    mostAtOnce() {
      const { runs } = bull;
      return Math.max(
        0,
        ...runs.map(
          ({ atMs }) =>
            runs.filter((other) => other.atMs <= atMs && (other.endMs ?? Infinity) > atMs).length,
        ),
      );
    },
    async dedupKeys() {
      const root = bull.key("");
      return (await connection().keys(`${root}d[en]:*`))
        .map((key) => key.slice(root.length))
        .toSorted();
    },
    async quiet() {
      await until("the queue is quiet", async () => {
        const counts = await bull.queue.getJobCounts("wait", "prioritized", "active", "delayed");
        return Object.values(counts).every((count) => count === 0);
      });
    },
    key: (suffix) => `${prefix}:${bull.name}:${suffix}`,
  };
  return bull;
}

/** Returns runs without times: [job id, v]. */
export function shape(runs: readonly Run[]): [string | undefined, unknown][] {
  return runs.map(({ id, v }) => [id, v]);
}
