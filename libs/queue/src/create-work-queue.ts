import {
  ensureError,
  formatKey,
  KonvergeError,
  parseKey,
  type ObjectKey,
  type Trigger,
} from "@konverge/core";
import { Queue } from "bullmq";
import { createQueueControl } from "./control/create-queue-control.ts";
import { assertOwnKey } from "./keys/job-payload.ts";
import { createKeyReader } from "./control/key-reader.ts";
import {
  DEFAULT_PREFIX,
  closeRedis,
  openProducer,
  runIdOf,
  runScript,
  withRedis,
  type RedisTarget,
} from "@konverge/redis";
import { queueNames, type QueueNames } from "./keys/queue-names.ts";
import { DEFAULT_CONCURRENCY, startQueueWorker } from "./attempt/queue-worker.ts";
import { createRequester } from "./request/requester.ts";
import { headAgeScript } from "./scripts/head-age.ts";
import { incarnationScript } from "./scripts/incarnation.ts";
import { findShardsIssue } from "./keys/shard-of.ts";
import { createShardedQueue } from "./sharded-queue.ts";
import { requestMany } from "./request/request-many.ts";
import type { QueueWorker, RequestObserver, WorkQueue } from "./contract/work-queue.ts";

/** Kept events of BullMQ, about; nothing of ours reads them. */
const EVENTS_KEPT = 1_000;
const DEFAULT_LEASE_MS = 10_000;
const MIN_LEASE_MS = 100;
const DEFAULT_ATTEMPTS_LISTED = 20;

export interface WorkQueueOptions {
  readonly redis: RedisTarget;
  readonly controller: string;
  readonly cluster: string;
  /** First part of all names in Redis, so that two installations can share one. Default `konverge`. */
  readonly prefix?: string;
  /**
   * How long a key stays with a worker that says nothing, in ms. Default 10 s. Too short and a busy process loses keys it
   * works on; too long and the keys of a dead worker wait. The same for all workers of a queue.
   */
  readonly leaseMs?: number;
  /** Parts over which the keys are spread, 1 to 64. Default 1. The same for all processes: `bindCluster` holds them to it. */
  readonly shards?: number;
  /**
   * Keys that may wait, parked ones included, before requests from outside (triggers `http` and `cli`) for further keys are
   * refused, however many ask at once. Default: no bound. Too low refuses a burst that would have been worked off in
   * seconds; too high fills Redis: about 2 KiB a key.
   */
  readonly maxQueueLength?: number;
  /** Told when the connection for requests fails; requests themselves reject. Default: nobody. */
  readonly onError?: (error: Error) => void;
  /** Looks on at every request of this process, its timers' included. Must not throw. */
  readonly observe?: (key: ObjectKey, trigger: Trigger) => RequestObserver;
}

/**
 * The queue of one controller on one cluster. Connects in the background: a request waits for Redis up to a second.
 * @throws KonvergeError `invalid_config`
 */
export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { shards = 1 } = options;
  const issue = findShardsIssue(shards);
  if (issue !== undefined) throw new KonvergeError("invalid_config", `shards ${issue}`);
  if (shards === 1) return openQueue(options);
  const each =
    options.maxQueueLength === undefined
      ? options
      : { ...options, maxQueueLength: Math.ceil(options.maxQueueLength / shards) };
  const others = Array.from({ length: shards - 1 }, (_, index) => openQueue(each, index + 1));
  return createShardedQueue([openQueue(each, 0), ...others], DEFAULT_CONCURRENCY);
}

/** A queue, or one shard of it. */
function openQueue(options: WorkQueueOptions, shard?: number): WorkQueue {
  const { controller, cluster, prefix = DEFAULT_PREFIX, leaseMs = DEFAULT_LEASE_MS } = options;
  if (!(leaseMs >= MIN_LEASE_MS)) {
    throw new KonvergeError(
      "invalid_config",
      `leaseMs is ${leaseMs}; at least ${MIN_LEASE_MS} is needed`,
    );
  }
  const { maxQueueLength = Infinity } = options;
  if (!(maxQueueLength > 0)) {
    throw new KonvergeError(
      "invalid_config",
      `maxQueueLength is ${maxQueueLength}; give a number above 0`,
    );
  }
  const names = queueNames(prefix, cluster, controller, shard);
  const redis = openProducer(options.redis);
  const onError = options.onError ?? (() => undefined);
  redis.on("error", onError);
  const queue = openBullQueue(names, redis, onError);
  const reader = createKeyReader(redis, names);
  const requester = createRequester(redis, names, maxQueueLength);
  const control = createQueueControl({ redis, names, controller, cluster, requester });
  const workers = new Set<QueueWorker>();

  const request: WorkQueue["request"] = async (key, trigger, requestOptions) => {
    assertOwnKey(key, options);
    const observer = options.observe?.(key, trigger);
    const traceparent = observer?.traceparent;
    const traced = traceparent === undefined ? trigger : { ...trigger, traceparent };
    try {
      const accepted = await requester(key, traced, requestOptions);
      observer?.ended(accepted);
      return accepted;
    } catch (error) {
      observer?.ended(ensureError(error));
      throw error;
    }
  };

  return {
    controller,
    cluster,
    control,
    request,
    requestMany: (items) => requestMany(items, request),
    async requestAt(key, atMs) {
      assertOwnKey(key, options);
      if (!Number.isFinite(atMs) || atMs < 0) {
        throw new KonvergeError("invalid_request", `atMs is ${atMs}; give a time in ms since 1970`);
      }
      const id = formatKey(key);
      await withRedis(redis, () => redis.zadd(names.timers, "LT", Math.floor(atMs), id));
    },
    getRequest: (id) => withRedis(redis, () => reader.getRequest(id)),
    async getKey(key) {
      assertOwnKey(key, options);
      return await withRedis(redis, () => reader.getKey(formatKey(key)));
    },
    async listAttempts(key, { limit = DEFAULT_ATTEMPTS_LISTED } = {}) {
      assertOwnKey(key, options);
      if (!(Number.isSafeInteger(limit) && limit > 0)) {
        throw new KonvergeError(
          "invalid_request",
          `limit is ${limit}; give a whole number above 0`,
        );
      }
      return await withRedis(redis, () => reader.listAttempts(formatKey(key), limit));
    },
    async counts() {
      const counted = await withRedis(redis, () =>
        queue.getJobCounts("wait", "prioritized", "active", "delayed"),
      );
      const { wait = 0, prioritized = 0, active = 0, delayed = 0 } = counted;
      return { waiting: wait + prioritized, active, delayed };
    },
    headAgeMs: () =>
      withRedis(redis, () =>
        runScript(redis, headAgeScript, {
          keys: { waiting: names.bullWaiting },
          args: { hashes: names.keyRoot, bull: names.bullRoot },
        }),
      ),
    async incarnation() {
      const { incarnation } = names;
      const { marker, info } = await withRedis(redis, () =>
        runScript(redis, incarnationScript, {
          keys: { incarnation },
          args: { fresh: crypto.randomUUID() },
        }),
      );
      return `${marker}@${runIdOf(info)}`;
    },
    work(work) {
      const worker = startQueueWorker({
        target: options.redis,
        names,
        owner: options,
        leaseMs,
        requestTimer: async (id) => {
          const trigger = { kind: "schedule", by: "timer" } as const;
          await request(parseKey(id), trigger, { class: "event", news: false });
        },
        work,
      });
      workers.add(worker);
      return worker;
    },
    async close() {
      await Promise.all([...workers].map((worker) => worker.stop()));
      await closeRedis(redis);
    },
  };
}

function openBullQueue(
  names: QueueNames,
  redis: ReturnType<typeof openProducer>,
  onError: (error: Error) => void,
): Queue {
  const queue = new Queue(names.bullName, {
    connection: redis,
    prefix: names.bullPrefix,
    streams: { events: { maxLen: EVENTS_KEPT } },
  });
  queue.on("error", onError);
  return queue;
}
