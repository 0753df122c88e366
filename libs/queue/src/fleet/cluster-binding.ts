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
import { formatIssue, FORMATS, UNSTAMPED, type Formats } from "./format.ts";

export interface ClusterBinding {
  readonly redis: RedisTarget;
  readonly prefix?: string;
  readonly cluster: string;
  /** Uid of the cluster's kube-system namespace, which is never recreated. */
  readonly uid: string;
  /** Number of shards of its queues. `any` for a program without queues: the number is neither set nor checked. Default 1. */
  readonly shards?: number | "any";
  /** The formats of data that the program can use. Default: those of this version. */
  readonly formats?: Formats;
}

/**
 * Binds a cluster's name to its uid permanently, so that two clusters named "default" never share a queue. Also binds the
 * number of shards: with another number, keys would move to other shards. Stamps the data with its format.
 * @throws KonvergeError `cluster_mismatch` if the name belongs to another cluster in this Redis
 * @throws KonvergeError `format_mismatch` if its data has a format that this version cannot use
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
 * Writes a missing binding, or checks the stored one. Throws like `bindCluster`. Announces `controllers` in the same step. Returns
 * the format of the data.
 */
export async function claimBinding(
  redis: RedisClient,
  {
    cluster,
    uid,
    shards = 1,
    prefix = DEFAULT_PREFIX,
    formats = FORMATS,
  }: Omit<ClusterBinding, "redis">,
  controllers: readonly { readonly field: string; readonly value: string }[] = [],
): Promise<number> {
  const uidKey = `${clusterRoot(prefix, cluster)}/uid`;
  const {
    uid: known,
    shards: split,
    format = formats.newest,
  } = await runScript(redis, claimBindingScript, {
    keys: {
      uidKey,
      shardsKey: shardsKey(prefix, cluster),
      formatKey: formatKey(prefix, cluster),
      controllers: controllersKey(prefix, cluster),
    },
    args: { uid, shards, ...formats, old: UNSTAMPED },
    each: controllers,
  });
  const issue = bindingIssue(
    { cluster, uid, shards, prefix, formats },
    { uid: known, shards: split, format },
  );
  if (issue !== undefined) throw issue;
  return format;
}

/** Returns the error with which a worker would fail to bind the cluster. Changes nothing. @throws KonvergeError `redis_unavailable` */
export async function findBindingIssue(
  binding: ClusterBinding,
): Promise<KonvergeError | undefined> {
  const { cluster, uid, shards = 1, prefix = DEFAULT_PREFIX, formats = FORMATS } = binding;
  const redis = openProducer(binding.redis);
  redis.on("error", () => undefined);
  try {
    return await withRedis(redis, async () => {
      const known = await redis.get(`${clusterRoot(prefix, cluster)}/uid`);
      const split = await redis.get(shardsKey(prefix, cluster));
      const format = await redis.hget(formatKey(prefix, cluster), "format");
      return bindingIssue(
        { cluster, uid, shards, prefix, formats },
        {
          uid: known ?? uid,
          shards: split ?? String(shards),
          format: format === null ? UNSTAMPED : Number(format),
        },
      );
    });
  } finally {
    await closeRedis(redis);
  }
}

function bindingIssue(
  { cluster, uid, shards, prefix, formats }: Required<Omit<ClusterBinding, "redis">>,
  stored: { readonly uid: string; readonly shards: string | undefined; readonly format: number },
): KonvergeError | undefined {
  if (stored.uid !== uid) {
    return new KonvergeError(
      "cluster_mismatch",
      `cluster "${cluster}" has the uid ${stored.uid} in this Redis, but the connected cluster has ${uid}; ` +
        "use another cluster name, prefix or Redis. If the old cluster no longer exists, stop its workers and delete its keys: " +
        `redis-cli --scan --pattern '${prefix}:{${cluster}[}/]*' | xargs -r redis-cli unlink`,
    );
  }
  const unreadable = formatIssue(cluster, stored.format, formats);
  if (unreadable !== undefined) return unreadable;
  if (shards !== "any" && stored.shards !== String(shards)) {
    return new KonvergeError(
      "shards_mismatch",
      `the queues of cluster "${cluster}" have ${stored.shards} shards in this Redis, but ${shards} are configured; ` +
        `set shards to ${stored.shards}, or change the number as described in docs/configuration.md, "Shards"`,
    );
  }
  return undefined;
}

/**
 * Returns the number of shards of a cluster's queues; 1 before the first worker.
 * @throws KonvergeError `format_mismatch` if its data has a format that this version cannot use
 */
export async function readShards(
  redis: RedisClient,
  prefix: string,
  cluster: string,
): Promise<number> {
  const [shards, format] = await Promise.all([
    redis.get(shardsKey(prefix, cluster)),
    redis.hget(formatKey(prefix, cluster), "format"),
  ]);
  const issue = formatIssue(cluster, format === null ? UNSTAMPED : Number(format), FORMATS);
  if (issue !== undefined) throw issue;
  return Number(shards ?? "1");
}

/** Hash with the format of a cluster's data, and the last time when an older worker was alive. */
export function formatKey(prefix: string, cluster: string): string {
  return `${clusterRoot(prefix, cluster)}/format`;
}

function shardsKey(prefix: string, cluster: string): string {
  return `${clusterRoot(prefix, cluster)}/shards`;
}
