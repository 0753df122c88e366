import { KonvergeError } from "@konverge/core";

export const DEFAULT_PREFIX = "konverge";

/**
 * `<prefix>:{<cluster>}`: the root of all that belongs to a cluster. A shard of its queues has `{<cluster>/<shard>}`, which
 * no cluster's name can be, as a slash is encoded there.
 * @throws KonvergeError `invalid_config`
 */
export function clusterRoot(prefix: string, cluster: string, shard?: number): string {
  if (prefix === "" || /[{}\s]/.test(prefix)) {
    throw new KonvergeError(
      "invalid_config",
      `prefix "${prefix}" must not be empty, nor hold braces or spaces`,
    );
  }
  if (cluster === "") {
    throw new KonvergeError("invalid_config", 'cluster is empty; name it, for example "default"');
  }
  return `${prefix}:{${encodeURIComponent(cluster)}${shard === undefined ? "" : `/${shard}`}}`;
}
