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
  /** Uid of the cluster's kube-system namespace, which is never recreated. */
  readonly uid: string;
  /** Number of shards of its queues. `any` for a program without queues: the number is neither set nor checked. Default 1. */
  readonly shards?: number | "any";
}

/**
 * Binds a cluster's name to its uid permanently, so that two clusters named "default" never share a queue. Also binds the
 * number of shards: with another number, keys would move to other shards.
 * @throws KonvergeError `cluster_mismatch` if the name belongs to another cluster in this Redis
 * @throws KonvergeError `shards_mismatch` if its queues have another number of shards
 * @throws KonvergeError `redis_unavailable`
 */
export async function bindCluster(binding: ClusterBinding): Promise<void> {
  const { cluster, uid } = binding;
  if (uid === "")
    throw new KonvergeError("invalid_config", `the uid of cluster "${cluster}" must not be empty`);
  const redis = openProducer(binding.redis);
  redis.on("error", () => undefined);
  try {
    await withRedis(redis, async () => {
      await claimBinding(redis, binding);
      // The guard is listed and controlled through this set, also without a worker.
      await redis.sadd(clustersKey(binding.prefix ?? DEFAULT_PREFIX), cluster);
    });
  } finally {
    await closeRedis(redis);
  }
}

/**
 * Writes a missing binding, or checks the stored one. Throws like `bindCluster`. Announces `controllers` in the same step.
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
  const issue = bindingIssue({ cluster, uid, shards, prefix }, { uid: known, shards: split });
  if (issue !== undefined) throw issue;
}

/** Returns the error with which a worker would fail to bind the cluster. Changes nothing. @throws KonvergeError `redis_unavailable` */
export async function findBindingIssue(
  binding: ClusterBinding,
): Promise<KonvergeError | undefined> {
  const { cluster, uid, shards = 1, prefix = DEFAULT_PREFIX } = binding;
  const redis = openProducer(binding.redis);
  redis.on("error", () => undefined);
  try {
    return await withRedis(redis, async () => {
      const known = await redis.get(`${clusterRoot(prefix, cluster)}/uid`);
      const split = await redis.get(shardsKey(prefix, cluster));
      return bindingIssue(
        { cluster, uid, shards, prefix },
        { uid: known ?? uid, shards: split ?? String(shards) },
      );
    });
  } finally {
    await closeRedis(redis);
  }
}

function bindingIssue(
  { cluster, uid, shards, prefix }: Required<Omit<ClusterBinding, "redis">>,
  stored: { readonly uid: string; readonly shards: string | undefined },
): KonvergeError | undefined {
  if (stored.uid !== uid) {
    return new KonvergeError(
      "cluster_mismatch",
      `cluster "${cluster}" has the uid ${stored.uid} in this Redis, but the connected cluster has ${uid}; ` +
        "use another cluster name, prefix or Redis. If the old cluster no longer exists, stop its workers and delete its keys: " +
        `redis-cli --scan --pattern '${prefix}:{${cluster}[}/]*' | xargs -r redis-cli unlink`,
    );
  }
  if (shards !== "any" && stored.shards !== String(shards)) {
    return new KonvergeError(
      "shards_mismatch",
      `the queues of cluster "${cluster}" have ${stored.shards} shards in this Redis, but ${shards} are configured; ` +
        `set shards to ${stored.shards}, or change the number as described in docs/configuration.md, "Shards"`,
    );
  }
  return undefined;
}

/** Returns the number of shards of a cluster's queues; 1 before the first worker. */
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
