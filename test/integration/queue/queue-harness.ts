import { afterAll, afterEach, beforeAll } from "vitest";
import { Redis } from "ioredis";
import type { ObjectKey, Outcome } from "@konverge/core";
import {
  createWorkQueue,
  type AttemptClosed,
  type AttemptEnd,
  type AttemptLease,
  type QueueWorker,
  type WorkOptions,
  type WorkQueue,
  type WorkQueueOptions,
} from "@konverge/queue";
import { PATIENT_MS, patiently } from "../../support/patient.ts";
import { until } from "../../support/until.ts";

export const CONTROLLER = "node-pool";
export const CLUSTER = "default";

export function keyOf(name: string): ObjectKey {
  return {
    controller: CONTROLLER,
    cluster: CLUSTER,
    resource: "nodepools",
    group: "demo.konverge.dev",
    namespace: "demo",
    name,
  };
}

export interface QueueHarness {
  /** The shared Redis, with the permissions of a worker. */
  readonly url: string;
  /** The same with those of the HTTP API. */
  readonly apiUrl: string;
  readonly apiTarget: { readonly url: string; readonly deadlineMs: number };
  /** The shared Redis, for callers that wait for it as long as it takes. */
  readonly target: { readonly url: string; readonly deadlineMs: number };
  /** A connection with all permissions. */
  readonly redis: Redis;
  /** New for every test. */
  readonly prefix: string;
  open(options?: Partial<WorkQueueOptions>): WorkQueue;
}

/** A real Redis for the tests of a file, with a separate prefix per test. Everything is closed and deleted. */
export function useQueues(): QueueHarness {
  const admin = process.env["REDIS_URL"] ?? "";
  const url = process.env["KONVERGE_TEST_WORKER_REDIS"] ?? admin;
  const target = { url, deadlineMs: PATIENT_MS };
  const apiUrl = process.env["KONVERGE_TEST_API_REDIS"] ?? admin;
  let redis: Redis | undefined;
  let prefix = "";
  let serial = 0;
  const queues = new Set<WorkQueue>();
  const nextPrefix = () => `test-${process.pid}-${Date.now()}-${serial++}`;

  const connection = () => {
    if (redis === undefined) throw new Error("Redis is not started yet");
    return redis;
  };
  beforeAll(() => {
    redis = new Redis(admin);
    prefix = nextPrefix();
  });
  afterEach(async () => {
    await Promise.all([...queues].map((queue) => queue.close()));
    queues.clear();
    for await (const keys of connection().scanStream({ match: `${prefix}:*`, count: 1_000 })) {
      if (keys.length > 0) await connection().unlink(...(keys as string[]));
    }
    prefix = nextPrefix();
  });
  afterAll(async () => {
    await redis?.quit();
  });

  return {
    url,
    apiUrl,
    apiTarget: { ...target, url: apiUrl },
    target,
    get redis() {
      return connection();
    },
    get prefix() {
      return prefix;
    },
    open(options = {}) {
      const queue = createWorkQueue({
        redis: target,
        controller: CONTROLLER,
        cluster: CLUSTER,
        prefix,
        ...options,
      });
      queues.add(queue);
      return queue;
    },
  };
}

/**
 * Repeats calls that Redis does not answer in time, which a busy machine can exceed. For tests of a Redis that fails, whose
 * queues need the default deadline.
 */
export function patient(queue: WorkQueue): WorkQueue {
  return new Proxy(queue, {
    get(target, name) {
      const own: unknown = Reflect.get(target, name, target);
      if (typeof own !== "function" || !ASKS.has(name)) return own;
      return (...args: unknown[]): Promise<unknown> =>
        patiently(async () => (await Reflect.apply(own, target, args)) as unknown);
    },
  });
}
const ASKS: ReadonlySet<string | symbol> = new Set<keyof WorkQueue>([
  "request",
  "requestMany",
  "requestAt",
  "getRequest",
  "getKey",
  "waitingRequests",
  "listAttempts",
  "counts",
  "backlog",
  "incarnation",
]);

interface Closed extends AttemptClosed {
  readonly id: string;
  readonly epoch: number;
  readonly outcome: Outcome["kind"];
}

export interface TestWorker extends QueueWorker {
  readonly started: AttemptLease[];
  readonly closed: Closed[];
  readonly errors: Error[];
}

/** Starts a worker with the handler `handle` that records its attempts. */
export function workOn(
  queue: WorkQueue,
  handle: (attempt: AttemptLease) => Promise<Outcome | AttemptEnd> | Outcome | AttemptEnd,
  options: Partial<WorkOptions> = {},
): TestWorker {
  const started: AttemptLease[] = [];
  const closed: Closed[] = [];
  const errors: Error[] = [];
  const worker = queue.work({
    workerId: "test",
    handle: async (attempt) => {
      started.push(attempt);
      const end = await handle(attempt);
      return "outcome" in end ? end : { outcome: end };
    },
    onClosed: ({ id, epoch }, end, { fenced, retryAfterMs }) => {
      const delay = retryAfterMs === undefined ? {} : { retryAfterMs };
      closed.push({ id, epoch, outcome: end.outcome.kind, fenced, ...delay });
    },
    onError: (error) => errors.push(error),
    ...options,
  });
  return Object.assign(worker, { started, closed, errors });
}

/** A handler that waits for a signal of the test. */
export interface Held {
  readonly wait: () => Promise<void>;
  readonly release: () => void;
}

export function hold(): Held {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { wait: () => promise, release: resolve };
}

/** Expects no job, deduplication key or parked follow-up to remain, after pending timers have fired. */
export async function expectNothingLeft(harness: QueueHarness, queue: WorkQueue): Promise<void> {
  await until("no job and no key of a job left", async () => {
    const { waiting, active, delayed } = await queue.counts();
    if (waiting + active + delayed > 0) return false;
    return (
      (await harness.redis.keys(`${harness.prefix}:{${CLUSTER}}:${CONTROLLER}:d[en]:*`)).length ===
      0
    );
  });
}
