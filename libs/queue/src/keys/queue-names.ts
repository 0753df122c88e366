import { KonvergeError } from "@konverge/core";
import { clusterRoot } from "@konverge/redis";

/** Where a queue keeps what in Redis. All names of a cluster share one hash tag, so scripts may touch several at once. */
export interface QueueNames {
  /** Of a queue that is split. */
  readonly shard: number | undefined;
  /** For BullMQ, which puts the queue's name and a type behind it. */
  readonly bullPrefix: string;
  readonly bullName: string;
  /** Sorted sets of keys: timers by due time, and those that are being requested. */
  readonly timers: string;
  readonly firing: string;
  /** Hash with the places given to each tenant, and sorted set of keys by the time they have aged. */
  readonly fair: string;
  readonly ageing: string;
  /** Sorted sets of keys by name: all whose object is not known to be gone, the dead ones, and those that wait for a pause to end. */
  readonly index: string;
  readonly dead: string;
  readonly parked: string;
  /** Hash of what is paused, and, while a pause is being ended, how far that has come. */
  readonly pauses: string;
  readonly resuming: string;
  /** Hash of attempts that a person cancelled, until their workers have ended them. */
  readonly aborts: string;
  /** List of what people ordered, newest first. */
  readonly actions: string;
  /** Hash of the cancelled requests of a key. */
  readonly cancelled: (id: string) => string;
  /** BullMQ's sorted set of waiting jobs. */
  readonly bullWaiting: string;
  /** What `keyHash` puts a key behind, and what BullMQ puts its own names behind. */
  readonly keyRoot: string;
  readonly bullRoot: string;
  /** Marker whose loss tells that other data may be lost too. */
  readonly incarnation: string;
  readonly keyHash: (id: string) => string;
  readonly attempts: (id: string) => string;
}

/** The set of all clusters of an installation; the one thing that belongs to none of them. */
export function clustersKey(prefix: string): string {
  return `${prefix}:clusters`;
}

/** Hash of the controllers that the workers of a cluster have announced. */
export function controllersKey(prefix: string, cluster: string): string {
  return `${clusterRoot(prefix, cluster)}/controllers`;
}

/** Hash of the workflows that they have announced. */
export function workflowsKey(prefix: string, cluster: string): string {
  return `${clusterRoot(prefix, cluster)}/workflows`;
}

/** `shard` of a queue that is split. Ours have a slash behind the root, BullMQ's a colon, so that neither can meet the other. */
export function queueNames(
  prefix: string,
  cluster: string,
  controller: string,
  shard?: number,
): QueueNames {
  const root = clusterRoot(prefix, cluster, shard);
  if (controller === "") throw new KonvergeError("invalid_config", "controller is empty; name it");
  const encoded = encodeURIComponent(controller);
  return {
    shard,
    bullPrefix: root,
    bullName: encoded,
    timers: `${root}/timers/${encoded}`,
    firing: `${root}/firing/${encoded}`,
    fair: `${root}/fair/${encoded}`,
    ageing: `${root}/ageing/${encoded}`,
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
    keyHash: (id) => `${root}/key/${id}`,
    attempts: (id) => `${root}/attempts/${id}`,
  };
}
