import { KonvergeError } from "./errors.ts";

/** The oldest version with every command of the scripts, for example ZADD with LT. */
const MIN_VERSION = [6, 2] as const;

/**
 * Returns the version from a reply to INFO. Valkey 7.2 and later report themselves as Redis 7.2.4 for compatibility, so one
 * field covers both.
 * @throws KonvergeError `redis_unsupported` for an old or unknown version
 */
export function checkRedisVersion(info: string): string {
  const version = /^redis_version:(\S+)/m.exec(info)?.[1];
  const [major = 0, minor = 0] = (version ?? "").split(".").map(Number);
  const [minMajor, minMinor] = MIN_VERSION;
  if (version !== undefined && (major > minMajor || (major === minMajor && minor >= minMinor))) {
    return version;
  }
  throw new KonvergeError(
    "redis_unsupported",
    `Redis is version ${version ?? "unknown"}; ${MIN_VERSION.join(".")} or later is required`,
  );
}
