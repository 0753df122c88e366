import { KonvergeError } from "./errors.ts";

/** The oldest that knows every command of the scripts, for example ZADD with LT. */
const MIN_VERSION = [6, 2] as const;

/**
 * The version out of an answer to INFO. Valkey 7.2 and later call themselves Redis 7.2.4 for compatibility, so this one
 * field serves both.
 * @throws KonvergeError `redis_unsupported` for one that is too old, or does not tell
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
    `Redis is version ${version ?? "unknown"}; at least ${MIN_VERSION.join(".")} is needed, so upgrade it`,
  );
}
