import { KonvergeError } from "@konverge/core";
import {
  closeRedis,
  openProducer,
  type RedisClient,
  type RedisTarget,
  withRedis,
} from "@konverge/redis";
import { clusterRoot, DEFAULT_PREFIX } from "./queue-names.ts";

export interface ClusterBinding {
  readonly redis: RedisTarget;
  readonly prefix?: string;
  readonly cluster: string;
  /** Of the cluster's kube-system namespace, which nobody deletes and recreates. */
  readonly uid: string;
}

/**
 * Ties a cluster's name to its uid, the first time for good, so that two clusters called "default" never share a queue.
 * @throws KonvergeError `cluster_mismatch` when this Redis knows another cluster by that name
 * @throws KonvergeError `redis_unavailable`
 */
export async function bindCluster(binding: ClusterBinding): Promise<void> {
  const { cluster, uid, prefix = DEFAULT_PREFIX } = binding;
  if (uid === "")
    throw new KonvergeError("invalid_config", `the uid of cluster "${cluster}" is empty`);
  const redis = openProducer(binding.redis);
  redis.on("error", () => undefined);
  try {
    const known = await withRedis(redis, () =>
      claim(redis, `${clusterRoot(prefix, cluster)}/uid`, uid),
    );
    if (known === uid) return;
    throw new KonvergeError(
      "cluster_mismatch",
      `this Redis knows cluster "${cluster}" by the uid ${known}, but the one at hand has ${uid}: ` +
        "give this cluster another name, use another prefix or another Redis; " +
        "if the old cluster is gone for good, delete its keys",
    );
  } finally {
    await closeRedis(redis);
  }
}

/** The uid that holds the name: ours when it was free. */
async function claim(redis: RedisClient, key: string, uid: string): Promise<string> {
  await redis.setnx(key, uid);
  return (await redis.get(key)) ?? uid;
}
