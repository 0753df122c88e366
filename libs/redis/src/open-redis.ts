import { Cluster, Redis } from "ioredis";
import { connect, discreet, type RedisClient, type RedisTarget } from "./redis-target.ts";

/** How long a producer waits for Redis, in ms: callers of the HTTP API get their 503 within a second. */
export const PRODUCER_DEADLINE_MS = 900;
/** An ask for tokens that takes longer is worth nothing: they are dead. */
const ONCE_MS = 1_000;
/** Two nodes that name each other, while slots move, must not be asked in a tight circle. */
const MOVED_DELAY_MS = 20;

/** A connection for calls that somebody waits for: it fails at once when Redis is away. */
export function openProducer(target: RedisTarget): RedisClient {
  const redis = connect(target, {
    single: {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: PRODUCER_DEADLINE_MS,
      connectTimeout: PRODUCER_DEADLINE_MS,
    },
    // A node that is gone is tried every 100 ms until the producer's time is over.
    cluster: { maxRedirections: 8, retryDelayOnMoved: MOVED_DELAY_MS },
  });
  if (redis instanceof Redis) gatherTurns(redis);
  return redis;
}

/**
 * What is written within one turn of the event loop leaves with one system call. Callers come many at a time, and a write of
 * its own costs more than most commands.
 */
function gatherTurns(redis: Redis): void {
  const send = redis.sendCommand.bind(redis);
  let isCorked = false;
  redis.sendCommand = (command, stream) => {
    if (!isCorked && redis.status === "ready") {
      const socket = redis.stream;
      isCorked = true;
      socket.cork();
      setImmediate(() => {
        isCorked = false;
        socket.uncork();
      });
    }
    return send(command, stream);
  };
}

/** A connection that fails at once when Redis is away, and never sends a command twice. */
export function openOnceOnly(target: RedisTarget): RedisClient {
  return connect(target, {
    single: {
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      commandTimeout: ONCE_MS,
      connectTimeout: ONCE_MS * 5,
    },
    cluster: { maxRedirections: 4, retryDelayOnFailover: 0, retryDelayOnClusterDown: 0 },
  });
}

/** A connection for messages: it comes back by itself, and subscribes again. */
export function openSubscriber(target: RedisTarget): RedisClient {
  return connect(target, { single: { maxRetriesPerRequest: null }, cluster: {} });
}

/** A worker's connection, and the copies that BullMQ makes of it to block on. */
export interface Consumer {
  readonly redis: RedisClient;
  /**
   * What is written until the answer is called, or this turn of the event loop is over, leaves with one system call. Worth
   * it where a few calls follow each other and nothing else is going on. Does nothing on a Redis Cluster.
   */
  gather(): () => void;
  /** Hangs up all of them, also one that never got through and that BullMQ would wait for. */
  disconnect(): void;
}

export interface ConsumerOptions {
  /** Whether what many callers write within one turn of the event loop leaves with one system call. Default: no. */
  readonly gathersTurns?: boolean;
}

/** Connections for a worker: commands wait until Redis is back, on a Redis Cluster until their slot has a primary. */
export function openConsumer(
  target: RedisTarget,
  { gathersTurns = false }: ConsumerOptions = {},
): Consumer {
  const redis = connect(target, {
    single: { maxRetriesPerRequest: null },
    cluster: { maxRedirections: Infinity, retryDelayOnMoved: MOVED_DELAY_MS },
  });
  if (gathersTurns && redis instanceof Redis) gatherTurns(redis);
  const connections: RedisClient[] = [redis];
  const keep = <Client extends RedisClient>(copy: Client): Client => {
    connections.push(copy);
    return discreet(copy);
  };
  if (redis instanceof Cluster) {
    const duplicate = redis.duplicate.bind(redis);
    redis.duplicate = (...override) => keep(duplicate(...override));
  } else {
    const duplicate: Redis["duplicate"] = redis.duplicate.bind(redis);
    redis.duplicate = (override) => keep(duplicate(override));
  }
  return {
    redis,
    gather() {
      if (redis instanceof Cluster || redis.status !== "ready") return () => undefined;
      const { stream } = redis;
      stream.cork();
      const turn = setImmediate(() => stream.uncork());
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        clearImmediate(turn);
        stream.uncork();
      };
    },
    disconnect() {
      for (const connection of connections) {
        // Once more, it would wait for the end of a stream that has ended: 2 s in which the process cannot.
        if (connection.status !== "end") connection.disconnect();
      }
    },
  };
}
