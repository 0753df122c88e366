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
import { assertOwnKey, type QueueOwner } from "./keys/job-payload.ts";
import { pagesOfKeys } from "./control/pages-of-keys.ts";
import { createKeyReader } from "./control/key-reader.ts";
import {
  DEFAULT_PREFIX,
  runIdOf,
  runScript,
  withRedis,
  type RedisClient,
  type RedisTarget,
} from "@konverge/redis";
import { queueNames, type QueueNames } from "./keys/queue-names.ts";
import { DEFAULT_CONCURRENCY, startQueueWorker } from "./attempt/queue-worker.ts";
import { decodeLog } from "./attempt/running-log.ts";
import type { RestoreFence } from "./restore/restore-watch.ts";
import { createRequester, type Requester } from "./request/requester.ts";
import { abandonScript } from "./scripts/abandon.ts";
import { backlogScript } from "./scripts/backlog.ts";
import { incarnationScript } from "./scripts/incarnation.ts";
import { waitingRequestsScript } from "./scripts/waiting-requests.ts";
import { findShardsIssue } from "./keys/shard-of.ts";
import { createShardedQueue } from "./sharded-queue.ts";
import { QueueProcess } from "./attempt/queue-process.ts";
import { requestMany } from "./request/request-many.ts";
import { SubmittedRequests } from "./request/submitted-requests.ts";
import type { QueueWorker, RequestObserver, WorkQueue } from "./contract/work-queue.ts";

/** Approximate number of BullMQ events kept. Konverge does not read them. */
const EVENTS_KEPT = 1_000;
const DEFAULT_LEASE_MS = 10_000;
const MIN_LEASE_MS = 100;
const DEFAULT_ATTEMPTS_LISTED = 20;
/** Number of waiting keys among which the backlog looks for a change. */
const KEYS_SEARCHED = 100;

export interface WorkQueueOptions {
  readonly redis: RedisTarget;
  readonly controller: string;
  readonly cluster: string;
  /** Prefix of all names in Redis, so that installations can share one. Default `konverge`. */
  readonly prefix?: string;
  /**
   * Time after which the key of an unresponsive worker is released, in ms. Default 10 s. Too short: a busy process loses
   * running keys. Too long: the keys of a crashed worker wait. Must be equal for all workers of a queue.
   */
  readonly leaseMs?: number;
  /** Number of parts that the keys are split into, 1 to 64. Default 1. Equal for all processes; `bindCluster` checks it. */
  readonly shards?: number;
  /**
   * Waiting keys, including parked ones, from which external requests (triggers `http` and `cli`) for further keys are
   * rejected, also under concurrency. Default: no limit. Too low rejects bursts that would be processed in seconds; too
   * high fills Redis, at about 2 KiB per key.
   */
  readonly maxQueueLength?: number;
  /**
   * Receives errors of the connection for requests, which themselves reject, and of submitted requests. Default: errors are
   * ignored.
   */
  readonly onError?: (error: Error) => void;
  /** What the queues of the process on this Redis share. Default: this queue alone has connections and background rounds. */
  readonly process?: QueueProcess;
  /** Keeps workers of this queue from starting work in a Redis that was restored. Default: none. */
  readonly fence?: RestoreFence;
  /** Observes every request of this process, including those of timers. Must not throw. */
  readonly observe?: (key: ObjectKey, trigger: Trigger) => RequestObserver;
  /**
   * Called with the user's name before each request of a user (triggers `http` and `cli`). An error rejects the
   * request.
   */
  readonly noteUser?: (key: ObjectKey, user: string) => Promise<void>;
}

/**
 * Opens the queue of one controller on one cluster. Connects in the background: a request waits for Redis up to 1 s.
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

function notingUsers({ noteUser }: WorkQueueOptions, requester: Requester): Requester {
  if (noteUser === undefined) return requester;
  return async (key, trigger, options) => {
    const { kind, by } = trigger;
    if (by !== undefined && (kind === "http" || kind === "cli")) await noteUser(key, by);
    return await requester(key, trigger, options);
  };
}

/** Opens a queue, or one shard of it. */
function openQueue(options: WorkQueueOptions, shard?: number): WorkQueue {
  const { controller, cluster, prefix = DEFAULT_PREFIX, leaseMs = DEFAULT_LEASE_MS } = options;
  const { maxQueueLength = Infinity, onError = () => undefined } = options;
  checkOptions(leaseMs, maxQueueLength);
  const names = queueNames(prefix, cluster, controller, shard);
  const { process = new QueueProcess(options.redis) } = options;
  const requests = process.requests(onError);
  const { redis } = requests;
  const queue = openBullQueue(names, redis, onError);
  const requester = notingUsers(options, createRequester(redis, names, maxQueueLength));
  const request = observedRequest(options, requester);
  const submitted = new SubmittedRequests({ request, onError });
  const workers = new Set<QueueWorker>();
  return {
    controller,
    cluster,
    control: createQueueControl({ redis, names, controller, cluster, requester }),
    request,
    submit: (key, trigger, requestOptions) => submitted.submit(key, trigger, requestOptions),
    accepted: (signal) => submitted.accepted(signal),
    requestMany: (items) => requestMany(items, request),
    async requestAt(key, atMs) {
      assertOwnKey(key, options);
      if (!Number.isFinite(atMs) || atMs < 0) {
        throw new KonvergeError("invalid_request", `atMs must be epoch milliseconds (got ${atMs})`);
      }
      const id = formatKey(key);
      await withRedis(redis, () => redis.zadd(names.timers, "LT", Math.floor(atMs), id));
    },
    ...readsOf(options, redis, names),
    async abandon(key, epoch) {
      assertOwnKey(key, options);
      const member = formatKey(key);
      return await withRedis(redis, () =>
        runScript(redis, abandonScript, {
          keys: { key: names.keyHash(member) },
          args: { epoch, member, bull: names.bullRoot },
        }),
      );
    },
    listKeys: () => pagesOfKeys(redis, names),
    counts: () => withRedis(redis, () => countJobs(queue)),
    work(work) {
      const worker = startQueueWorker({
        names,
        owner: options,
        leaseMs,
        process,
        requestTimer: async (id) => {
          const trigger = { kind: "schedule", by: "timer" } as const;
          await request(parseKey(id), trigger, { class: "event", news: false });
        },
        work,
        fence: options.fence,
      });
      workers.add(worker);
      return worker;
    },
    async close() {
      await Promise.all([submitted.close(), ...[...workers].map((worker) => worker.stop())]);
      await requests.release();
    },
  };
}

function checkOptions(leaseMs: number, maxQueueLength: number): void {
  if (!(leaseMs >= MIN_LEASE_MS)) {
    throw new KonvergeError(
      "invalid_config",
      `leaseMs must be >= ${MIN_LEASE_MS} (got ${leaseMs})`,
    );
  }
  if (!(maxQueueLength > 0)) {
    throw new KonvergeError("invalid_config", `maxQueueLength must be > 0 (got ${maxQueueLength})`);
  }
}

function observedRequest(options: WorkQueueOptions, requester: Requester): WorkQueue["request"] {
  return async (key, trigger, requestOptions) => {
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
}

type QueueReads = Pick<
  WorkQueue,
  | "getRequest"
  | "getKey"
  | "waitingRequests"
  | "listAttempts"
  | "runningLog"
  | "backlog"
  | "incarnation"
  | "readProgress"
  | "writeProgress"
>;

function readsOf(owner: QueueOwner, redis: RedisClient, names: QueueNames): QueueReads {
  const reader = createKeyReader(redis, names);
  return {
    getRequest: (id) => withRedis(redis, () => reader.getRequest(id)),
    async getKey(key) {
      assertOwnKey(key, owner);
      return await withRedis(redis, () => reader.getKey(formatKey(key)));
    },
    async waitingRequests(keys) {
      for (const key of keys) assertOwnKey(key, owner);
      const each = keys.map((key) => ({ key: names.keyHash(formatKey(key)) }));
      return await withRedis(redis, () => runScript(redis, waitingRequestsScript, { each }));
    },
    async listAttempts(key, { limit = DEFAULT_ATTEMPTS_LISTED } = {}) {
      assertOwnKey(key, owner);
      if (!(Number.isSafeInteger(limit) && limit > 0)) {
        throw new KonvergeError("invalid_request", `limit must be an integer > 0 (got ${limit})`);
      }
      return await withRedis(redis, () => reader.listAttempts(formatKey(key), limit));
    },
    async runningLog(key) {
      assertOwnKey(key, owner);
      const text = await withRedis(redis, () => redis.get(names.log(formatKey(key))));
      return text === null ? undefined : decodeLog(text);
    },
    backlog: () =>
      withRedis(redis, () =>
        runScript(redis, backlogScript, {
          keys: {
            waiting: names.bullWaiting,
            index: names.index,
            dead: names.dead,
            parked: names.parked,
          },
          args: { hashes: names.keyRoot, bull: names.bullRoot, most: KEYS_SEARCHED },
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
    async readProgress() {
      return (await withRedis(redis, () => redis.get(names.requested))) ?? undefined;
    },
    async writeProgress(text) {
      await withRedis(redis, () => redis.set(names.requested, text));
    },
  };
}

async function countJobs(queue: Queue): ReturnType<WorkQueue["counts"]> {
  const counted = await queue.getJobCounts("wait", "prioritized", "active", "delayed");
  const { wait = 0, prioritized = 0, active = 0, delayed = 0 } = counted;
  return { waiting: wait + prioritized, active, delayed };
}

function openBullQueue(
  names: QueueNames,
  redis: RedisClient,
  onError: (error: Error) => void,
): Queue {
  const queue = new Queue(names.bullName, {
    connection: redis,
    prefix: names.bullPrefix,
    streams: { events: { maxLen: EVENTS_KEPT } },
    // A failed check would never be repeated, and fail all later calls.
    skipVersionCheck: true,
  });
  queue.on("error", onError);
  return queue;
}
