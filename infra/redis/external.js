import { removeKeys } from "./remove-keys.js";
import { RedisUnavailable } from "./unavailable.js";
import { ask } from "./resp.js";
import { startRedis } from "./start.js";
import { isNewEnough, OLDEST_REDIS, parseServerInfo } from "./version.js";

/** @type {typeof import("./index.d.ts").checkRedisUrl} */
export async function checkRedisUrl(url) {
  const shown = withoutSecret(url);
  let info;
  try {
    [info = ""] = await ask(url, [["INFO"]]);
  } catch (cause) {
    throw new RedisUnavailable(
      `REDIS_URL=${shown} does not respond (${/** @type {Error} */ (cause).message}): start that Redis, correct the address, or unset REDIS_URL to start one automatically`,
      { cause },
    );
  }
  const server = parseServerInfo(info);
  if (server === undefined || !isNewEnough(server.version)) {
    throw new RedisUnavailable(
      `REDIS_URL=${shown} is ${server?.kind ?? "not Redis"} ${server?.version ?? "of unknown version"}, but ${OLDEST_REDIS} or later is required: upgrade it, or unset REDIS_URL to start one automatically`,
    );
  }
  return { ...server, evicts: !/^maxmemory_policy:noeviction\s*$/m.test(info) };
}

/** @type {typeof import("./index.d.ts").obtainRedis} */
export async function obtainRedis({ log, env = process.env }) {
  const url = env.REDIS_URL;
  if (!url) {
    const redis = await startRedis();
    return {
      url: redis.url,
      version: redis.version,
      kind: redis.kind,
      owned: true,
      removeKeys: async () => {},
      stop: () => redis.stop(),
    };
  }
  const { evicts, ...server } = await checkRedisUrl(url);
  if (evicts) {
    log(
      `REDIS_URL=${withoutSecret(url)} may evict keys, which loses requests: set maxmemory-policy noeviction`,
    );
  }
  return {
    url,
    ...server,
    owned: false,
    removeKeys: (prefix) => removeKeys(url, prefix),
    stop: async () => {},
  };
}

/** @param {string} url @returns {string} */
function withoutSecret(url) {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^rediss?:$/.test(parsed.protocol)) {
    throw new RedisUnavailable("REDIS_URL is not a valid address such as redis://127.0.0.1:6379");
  }
  return `${parsed.protocol}//${parsed.host}${parsed.pathname}`;
}
