import { Queue } from "bullmq";
import { DEFAULT_PREFIX, closeRedis, openProducer, type RedisTarget } from "@konverge/redis";
import { queueNames } from "../keys/queue-names.ts";

export interface RawQueueOptions {
  readonly redis: RedisTarget;
  readonly controller: string;
  readonly cluster: string;
  readonly prefix?: string;
  /** Index of the shard of a sharded queue, from 0. */
  readonly shard?: number;
  /** Receives connection errors. Default: errors are ignored. */
  readonly onError?: (error: Error) => void;
}

/** BullMQ's own view of a queue. */
export interface RawQueue {
  readonly queue: Queue;
  close(): Promise<void>;
}

/**
 * Opens the BullMQ queue of a work queue, for inspection only (bull-board). Its retry, remove, clean, drain and duplicate
 * break the queue's promises: they drop the parked follow-up of a job, or run a key twice.
 */
export function openRawQueue(options: RawQueueOptions): RawQueue {
  const { controller, cluster, prefix = DEFAULT_PREFIX, onError = () => undefined } = options;
  const names = queueNames(prefix, cluster, controller, options.shard);
  const redis = openProducer(options.redis);
  redis.on("error", onError);
  // Without skipMetasUpdate, a second Queue object would overwrite the stored settings of the first.
  const queue = new Queue(names.bullName, {
    connection: redis,
    prefix: names.bullPrefix,
    skipMetasUpdate: true,
    // A failed check would never be repeated, and fail all later calls.
    skipVersionCheck: true,
  });
  queue.on("error", onError);
  return { queue, close: () => closeRedis(redis) };
}
