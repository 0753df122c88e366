import { KonvergeError } from "@konverge/core";

export const DEFAULT_PREFIX = "konverge";

/**
 * Returns `<prefix>:{<cluster>}`, the root of a cluster's names. A shard has `{<cluster>/<shard>}`, which is distinct from
 * every cluster name because a slash is encoded there.
 * @throws KonvergeError `invalid_config`
 */
export function clusterRoot(prefix: string, cluster: string, shard?: number): string {
  checkPrefix(prefix);
  if (cluster === "") {
    throw new KonvergeError(
      "invalid_config",
      'cluster must not be empty; use a name such as "default"',
    );
  }
  return `${prefix}:{${encodeURIComponent(cluster)}${shard === undefined ? "" : `/${shard}`}}`;
}

/**
 * Returns `<prefix>:{/<part>}`, the root of names that all clusters of an installation share. No cluster has it, because a
 * slash is encoded in cluster names. @throws KonvergeError `invalid_config`
 */
export function sharedRoot(prefix: string, part: string): string {
  checkPrefix(prefix);
  return `${prefix}:{/${part}}`;
}

function checkPrefix(prefix: string): void {
  if (prefix !== "" && !/[{}\s]/.test(prefix)) return;
  throw new KonvergeError(
    "invalid_config",
    `prefix "${prefix}" must not be empty or contain braces or spaces`,
  );
}
