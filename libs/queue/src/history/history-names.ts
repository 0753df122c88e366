import { clusterRoot } from "@konverge/redis";
import { shardOf } from "../keys/shard-of.ts";

/** The names of a cluster's history in Redis, under the same hash tag as its queues. */
export interface HistoryNames {
  /** Stream: one short row per attempt of the cluster, oldest first. */
  readonly index: string;
  /** Hash: keys that are throttled now. */
  readonly loops: string;
  /** Stream of the records of one key; the queue writes it, in the key's shard. */
  readonly attempts: (key: string) => string;
  /** Hash: competing writers of an object. */
  readonly contention: (object: string) => string;
  /** Sorted sets, one per hour: objects by conflicts, fields by flips. */
  readonly contended: (hour: number) => string;
  readonly ownershipFlips: (hour: number) => string;
  /** Sorted sets, one per hour: attempts with a conflict by controller and manager, and by these and namespace. */
  readonly competing: (hour: number) => string;
  readonly competingIn: (hour: number) => string;
  /** Sorted sets, one per minute: objects and controllers by wasted writes. */
  readonly wasted: (minute: number) => string;
  /** Hash, one per minute: measured values of the cluster and its controllers. */
  readonly gauges: (minute: number) => string;
  /** The last sample, and a key that exists while a process samples. */
  readonly lastSample: string;
  readonly sampler: string;
  readonly rollup: (controller: string, minute: number) => string;
  /** Exists while a report counts as made. */
  readonly said: (what: string) => string;
}

export const HOUR_MS = 3_600_000;
export const MINUTE_MS = 60_000;
/** Idle time that ends an episode of contention. */
export const EPISODE_PAUSE_MS = 600_000;

/** @throws KonvergeError `invalid_config` */
export function historyNames(prefix: string, cluster: string, shards = 1): HistoryNames {
  const root = clusterRoot(prefix, cluster);
  const homeOf = (key: string) =>
    shards === 1 ? root : clusterRoot(prefix, cluster, shardOf(key, shards));
  return {
    index: `${root}/records`,
    loops: `${root}/loops`,
    attempts: (key) => `${homeOf(key)}/attempts/${key}`,
    contention: (object) => `${root}/contention/${object}`,
    contended: (hour) => `${root}/contended/${hour}`,
    ownershipFlips: (hour) => `${root}/ownership-flips/${hour}`,
    competing: (hour) => `${root}/competing/${hour}`,
    competingIn: (hour) => `${root}/competing-in/${hour}`,
    wasted: (minute) => `${root}/wasted/${minute}`,
    gauges: (minute) => `${root}/gauges/${minute}`,
    lastSample: `${root}/gauges/last`,
    sampler: `${root}/gauges/sampler`,
    rollup: (controller, minute) => `${root}/rollup/${encodeURIComponent(controller)}/${minute}`,
    said: (what) => `${root}/said/${what}`,
  };
}
