/** The oldest Redis with every command of the queue's and the guard's scripts. */
export const OLDEST_REDIS = "6.2.0";

/**
 * Parses the output of `redis-server --version` or `valkey-server --version`.
 * @param {string} text for example `Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64`
 * @returns {{ version: string, kind: "redis" | "valkey" } | undefined}
 */
export function parseServerVersion(text) {
  const version = /\bv=(\d+\.\d+\.\d+)/.exec(text)?.[1];
  if (version === undefined) return undefined;
  return { version, kind: /valkey/i.test(text) ? "valkey" : "redis" };
}

/**
 * Parses the reply of `INFO server`. There Valkey reports redis 7.2 for compatibility and adds its own version.
 * @param {string} info
 * @returns {{ version: string, kind: "redis" | "valkey" } | undefined}
 */
export function parseServerInfo(info) {
  const field = (/** @type {string} */ name) => new RegExp(`^${name}:(\\S+)`, "m").exec(info)?.[1];
  const valkey = field("valkey_version");
  if (valkey !== undefined) return { version: valkey, kind: "valkey" };
  const version = field("redis_version");
  return version === undefined ? undefined : { version, kind: "redis" };
}

/** @param {string} version `major.minor.patch` @returns {boolean} */
export function isNewEnough(version) {
  const [have = [], need = []] = [version, OLDEST_REDIS].map((text) => text.split(".").map(Number));
  for (const [index, wanted] of need.entries()) {
    const difference = (have[index] ?? 0) - wanted;
    if (difference !== 0) return difference > 0;
  }
  return true;
}
