import { Cluster, Redis } from "ioredis";
import {
  connect,
  discreet,
  followLike,
  PRODUCER_DEADLINE_MS,
  type RedisClient,
  type RedisTarget,
} from "./redis-target.ts";
import { atEndOfTurn } from "./end-of-turn.ts";
import { setDeadline } from "./with-redis.ts";

/** Tokens of a slower request have expired. */
const ONCE_MS = 1_000;
/** Delays redirections, because nodes can redirect to each other while slots move. */
const MOVED_DELAY_MS = 20;

/** Opens a connection for calls with a waiting caller. It fails immediately if Redis is unavailable. */
export function openProducer(target: RedisTarget): RedisClient {
  const deadlineMs = deadlineOf(target) ?? PRODUCER_DEADLINE_MS;
  const redis = connect(target, {
    single: {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      // Only a net below `withRedis`, whose deadline still counts answers that arrived during a stall of this process.
      commandTimeout: 2 * deadlineMs,
      connectTimeout: deadlineMs,
    },
    // An unavailable node is retried every 100 ms until the producer's deadline.
    cluster: { maxRedirections: 8, retryDelayOnMoved: MOVED_DELAY_MS },
  });
  setDeadline(redis, deadlineMs);
  if (redis instanceof Redis) gatherTurns(redis);
  return redis;
}

/**
 * Sends the commands of one turn of the event loop with one system call. Callers arrive in bursts, and a separate write
 * costs more than most commands.
 */
function gatherTurns(redis: Redis): void {
  const send = redis.sendCommand.bind(redis);
  let isCorked = false;
  redis.sendCommand = (command, stream) => {
    if (!isCorked && redis.status === "ready") {
      const socket = redis.stream;
      isCorked = true;
      socket.cork();
      atEndOfTurn(() => {
        isCorked = false;
        socket.uncork();
      });
    }
    return send(command, stream);
  };
}

/** Returns the deadline that the caller configured. */
function deadlineOf(target: RedisTarget): number | undefined {
  return "url" in target ? target.deadlineMs : undefined;
}

/** Opens a connection that fails immediately if Redis is unavailable, and never sends a command twice. */
export function openOnceOnly(target: RedisTarget): RedisClient {
  const deadlineMs = deadlineOf(target);
  const redis = connect(target, {
    single: {
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      commandTimeout: deadlineMs ?? ONCE_MS,
      connectTimeout: ONCE_MS * 5,
    },
    cluster: { maxRedirections: 4, retryDelayOnFailover: 0, retryDelayOnClusterDown: 0 },
  });
  if (deadlineMs !== undefined) setDeadline(redis, deadlineMs);
  return redis;
}

/** Opens a connection for messages. It reconnects and resubscribes automatically. */
export function openSubscriber(target: RedisTarget): RedisClient {
  return connect(target, { single: { maxRetriesPerRequest: null }, cluster: {} });
}

/** Opens a connection for one blocking command at a time. A command fails when its connection breaks, and is not sent again. */
export function openBlocking(target: RedisTarget): RedisClient {
  const single = { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false };
  return connect(target, { single, cluster: {} });
}

/** A worker's connection, and the copies that BullMQ makes for blocking commands. */
export interface Consumer {
  readonly redis: RedisClient;
  /** Closes all connections, including one that never connected and that BullMQ would wait for. */
  disconnect(): void;
}

export interface ConsumerOptions {
  /** Sends the commands of one turn of the event loop with one system call. Default false. */
  readonly gathersTurns?: boolean;
}

/** Opens connections for a worker. Commands wait until Redis, or on a Redis Cluster the slot's primary, is available. */
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
    followLike(redis, copy);
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
    disconnect() {
      for (const connection of connections) {
        // A second call would wait 2 s for the end of a stream that has ended, and delay the process exit.
        if (connection.status !== "end") connection.disconnect();
      }
    },
  };
}
