import { KonvergeError } from "@konverge/core";
import { clusterRoot } from "@konverge/redis";

/** The names of a queue's data in Redis. All names of a cluster share one hash tag, so scripts can use several. */
export interface QueueNames {
  /** Index of the shard; undefined for an unsharded queue. */
  readonly shard: number | undefined;
  /** For BullMQ, which appends the queue's name and a type. */
  readonly bullPrefix: string;
  readonly bullName: string;
  /** Sorted sets of keys by due time: timers, and claimed timers. */
  readonly timers: string;
  readonly firing: string;
  /** Hash of the elected pumps by queue, for all queues with the same root. */
  readonly pumps: string;
  /** Hash of each tenant's last tags, and sorted set of keys by the time from which they wait. */
  readonly fair: string;
  readonly aging: string;
  /** Sorted sets of keys by name: all except those of deleted objects, dead-lettered keys, and paused keys. */
  readonly index: string;
  readonly dead: string;
  readonly parked: string;
  /** Hash of pauses, and the progress of ending one. */
  readonly pauses: string;
  readonly resuming: string;
  /** Hash of attempts that a user cancelled, until their workers have ended them. */
  readonly aborts: string;
  /** List of operator actions, newest first. */
  readonly actions: string;
  /** Sorted set of the cancelled requests of a key, by number. */
  readonly cancelled: (id: string) => string;
  /** BullMQ's sorted set of waiting jobs. */
  readonly bullWaiting: string;
  /** Prefixes of key hashes and of BullMQ's names. */
  readonly keyRoot: string;
  readonly bullRoot: string;
  /** A marker. If it is missing, other data may be lost too. */
  readonly incarnation: string;
  /** Hash of the progress by kind of work, for all queues with the same root. */
  readonly progress: string;
  /** What the leader has requested, so that the next one can continue. */
  readonly requested: string;
  readonly keyHash: (id: string) => string;
  readonly attempts: (id: string) => string;
  /** The log of the running attempt. */
  readonly log: (id: string) => string;
}

/** The set of all clusters of an installation; it belongs to no cluster. */
export function clustersKey(prefix: string): string {
  return `${prefix}:clusters`;
}

/** Hash of the controllers that the workers of a cluster have announced. */
export function controllersKey(prefix: string, cluster: string): string {
  return `${clusterRoot(prefix, cluster)}/controllers`;
}

/** Hash of the workflows that the workers of a cluster have announced. */
export function workflowsKey(prefix: string, cluster: string): string {
  return `${clusterRoot(prefix, cluster)}/workflows`;
}

/** Returns the names of a queue or shard. A slash follows the root, in BullMQ's names a colon, so they never collide. */
export function queueNames(
  prefix: string,
  cluster: string,
  controller: string,
  shard?: number,
): QueueNames {
  const root = clusterRoot(prefix, cluster, shard);
  if (controller === "") throw new KonvergeError("invalid_config", "controller must not be empty");
  const encoded = encodeURIComponent(controller);
  return {
    shard,
    bullPrefix: root,
    bullName: encoded,
    timers: `${root}/timers/${encoded}`,
    firing: `${root}/firing/${encoded}`,
    pumps: `${root}/pumps`,
    fair: `${root}/fair/${encoded}`,
    aging: `${root}/aging/${encoded}`,
    index: `${root}/index/${encoded}`,
    dead: `${root}/dead/${encoded}`,
    parked: `${root}/parked/${encoded}`,
    pauses: `${root}/pauses/${encoded}`,
    resuming: `${root}/resuming/${encoded}`,
    aborts: `${root}/aborts/${encoded}`,
    actions: `${root}/actions/${encoded}`,
    cancelled: (id) => `${root}/cancelled/${id}`,
    bullWaiting: `${root}:${encoded}:prioritized`,
    keyRoot: `${root}/key/`,
    bullRoot: `${root}:${encoded}:`,
    incarnation: `${root}/incarnation/${encoded}`,
    progress: `${root}/progress`,
    requested: `${root}/requested/${encoded}`,
    keyHash: (id) => `${root}/key/${id}`,
    attempts: (id) => `${root}/attempts/${id}`,
    log: (id) => `${root}/log/${id}`,
  };
}
