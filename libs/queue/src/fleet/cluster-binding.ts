import { KonvergeError } from "@konverge/core";
import {
  closeRedis,
  openProducer,
  type RedisClient,
  type RedisTarget,
  runScript,
  withRedis,
  clusterRoot,
  DEFAULT_PREFIX,
} from "@konverge/redis";
import { clustersKey, controllersKey } from "../keys/queue-names.ts";
import { claimBindingScript } from "../scripts/claim-binding.ts";

export interface ClusterBinding {
  readonly redis: RedisTarget;
  readonly prefix?: string;
  readonly cluster: string;
  /** Of the cluster's kube-system namespace, which nobody deletes and recreates. */
  readonly uid: string;
  /** Parts over which the keys of its queues are spread. Default 1. */
  readonly shards?: number;
}

/**
 * Ties a cluster's name to its uid, the first time for good, so that two clusters called "default" never share a queue.
 * The number of shards is bound with it: with another one, keys would have two homes.
 * @throws KonvergeError `cluster_mismatch` when this Redis knows another cluster by that name
 * @throws KonvergeError `shards_mismatch` when its queues are split otherwise
 * @throws KonvergeError `redis_unavailable`
 */
export async function bindCluster(binding: ClusterBinding): Promise<void> {
  const { cluster, uid } = binding;
  if (uid === "")
    throw new KonvergeError("invalid_config", `the uid of cluster "${cluster}" is empty`);
  const redis = openProducer(binding.redis);
  redis.on("error", () => undefined);
  try {
    await withRedis(redis, async () => {
      await claimBinding(redis, binding);
      // Its guard is seen and steered by this list, also where no worker is at home.
      await redis.sadd(clustersKey(binding.prefix ?? DEFAULT_PREFIX), cluster);
    });
  } finally {
    await closeRedis(redis);
  }
}

/**
 * Writes the binding where it is missing, and holds it to what is written. Throws as `bindCluster` does. `controllers` are
 * announced with it.
 */
export async function claimBinding(
  redis: RedisClient,
  { cluster, uid, shards = 1, prefix = DEFAULT_PREFIX }: Omit<ClusterBinding, "redis">,
  controllers: readonly { readonly field: string; readonly value: string }[] = [],
): Promise<void> {
  const uidKey = `${clusterRoot(prefix, cluster)}/uid`;
  const { uid: known, shards: split } = await runScript(redis, claimBindingScript, {
    keys: {
      uidKey,
      shardsKey: shardsKey(prefix, cluster),
      controllers: controllersKey(prefix, cluster),
    },
    args: { uid, shards },
    each: controllers,
  });
  if (known !== uid) {
    throw new KonvergeError(
      "cluster_mismatch",
      `this Redis knows cluster "${cluster}" by the uid ${known}, but the one at hand has ${uid}: ` +
        "give this cluster another name, use another prefix or another Redis; " +
        "if the old cluster is gone for good, delete its keys",
    );
  }
  if (split !== String(shards)) {
    throw new KonvergeError(
      "shards_mismatch",
      `this Redis keeps the queues of cluster "${cluster}" in ${split} shards, but the configuration says ${shards}: ` +
        `set shards to ${split}; how the number is changed is told in docs/configuration.md, "Shards"`,
    );
  }
}

/** How many shards the queues of a cluster have: 1 where no worker has said so yet. */
export async function readShards(
  redis: RedisClient,
  prefix: string,
  cluster: string,
): Promise<number> {
  return Number((await redis.get(shardsKey(prefix, cluster))) ?? "1");
}

function shardsKey(prefix: string, cluster: string): string {
  return `${clusterRoot(prefix, cluster)}/shards`;
}
