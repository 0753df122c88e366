import {
  closeRedis,
  openBlocking,
  openConsumer,
  openProducer,
  SharedConnection,
  type Consumer,
  type RedisClient,
  type RedisTarget,
  type SharedUse,
} from "@konverge/redis";
import { Redis } from "ioredis";
import { QueuePumps } from "../request/queue-pumps.ts";
import { JobWaits } from "./job-waits.ts";

/** The connections of one worker. */
export interface WorkerConnections {
  readonly redis: RedisClient;
  /** Undefined on a Redis Cluster, where each of BullMQ's workers waits with a connection of its own. */
  readonly waits: JobWaits | undefined;
  /** Closes what no other worker of the process uses. */
  disconnect(): void;
}

interface SharedConsumer {
  readonly consumer: Consumer;
  readonly waits: JobWaits;
}

/**
 * What the queues of one process share: a connection for requests, one for the commands of all workers, one with which they wait
 * for jobs, and the background rounds with theirs. Each is open while it is used. Without this, a process would have three
 * connections per queue.
 */
export class QueueProcess {
  readonly pumps: QueuePumps;
  readonly #target: RedisTarget;
  readonly #producer: SharedConnection;
  #shared: SharedConsumer | undefined;
  /** Their receivers of errors. */
  readonly #users = new Set<{ readonly onError: (error: Error) => void }>();

  constructor(target: RedisTarget) {
    this.#target = target;
    this.pumps = new QueuePumps(target);
    this.#producer = new SharedConnection({
      open: () => openProducer(target),
      close: (redis) => closeRedis(redis),
    });
  }

  /** The connection for calls with a waiting caller. */
  requests(onError: (error: Error) => void): SharedUse {
    return this.#producer.use(onError);
  }

  /** The connections of a worker. */
  connect(onError: (error: Error) => void): WorkerConnections {
    const { consumer, waits } = this.#shared ?? this.#open();
    const { redis } = consumer;
    redis.on("error", onError);
    if (waits === undefined) return { redis, waits, disconnect: () => consumer.disconnect() };
    const user = { onError };
    this.#users.add(user);
    return {
      redis,
      waits,
      disconnect: () => {
        if (!this.#users.delete(user)) return;
        if (this.#users.size === 0) {
          this.#shared = undefined;
          waits.close();
          consumer.disconnect();
        }
        redis.off("error", onError);
      },
    };
  }

  #open(): SharedConsumer | { readonly consumer: Consumer; readonly waits: undefined } {
    const consumer = openConsumer(this.#target);
    const { redis } = consumer;
    if (!(redis instanceof Redis)) return { consumer, waits: undefined };
    // Each worker and its part of BullMQ listen to it. It adds to the limit, and would make 0 a low one.
    redis.setMaxListeners(Infinity);
    // Once, whatever the number of queues.
    const onError = (error: Error) => [...this.#users][0]?.onError(error);
    const open = () => {
      const blocking = openBlocking(this.#target) as Redis;
      blocking.on("error", onError);
      return blocking;
    };
    const waits = new JobWaits({ open, redis, onError });
    this.#shared = { consumer, waits };
    return this.#shared;
  }
}
