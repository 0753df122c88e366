import { KonvergeError } from "@konverge/core";

/** Error codes of Redis with their suggested fixes. */
const FIXES: readonly (readonly [RegExp, string])[] = [
  [/\bOOM\b/, "Redis is full; raise maxmemory, or delete data of other applications"],
  [
    /\bREADONLY\b/,
    "the server is a replica; use the URL of the primary or the Sentinels, or wait for a failover to end",
  ],
  [
    /\bMISCONF\b/,
    "Redis cannot save to disk; free space or correct its directory, see the log of Redis",
  ],
  [/\bBUSY\b/, "blocked by a Lua script; wait or run SCRIPT KILL"],
  [/\bLOADING\b/, "Redis is loading its data; retry later"],
  [
    /\bMASTERDOWN\b/,
    "the server is a replica without its primary; wait for the failover, or use the URL of the primary",
  ],
  [/\bNOREPLICAS\b/, "too few replicas are connected (min-replicas-to-write); restore them"],
  [
    /\bCLUSTERDOWN\b/,
    "part of the Redis Cluster has no primary; start the failed node, or let its replica take over",
  ],
  [
    // While two nodes have parts of a slot, each may refer a client to the other.
    /\bTRYAGAIN\b|\bASK\b|Too many Cluster redirections|non local key/,
    "a slot of the Redis Cluster is being moved; retry later, and see docs/redis.md before moving more slots",
  ],
  [
    /\bMOVED\b/,
    "the server is a node of a Redis Cluster; use a URL of the form redis+cluster://host:port,host:port",
  ],
  [
    /cluster support disabled/,
    "the server is not a Redis Cluster; use a URL of the form redis://host:port",
  ],
  [/\b(NOAUTH|WRONGPASS)\b/, "the user or password in the URL is wrong or missing"],
  [
    /\bNOPERM\b/,
    "the ACL denies it; `konverge manifests -o acl` prints Redis users with the required permissions",
  ],
  [
    /ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENOENT|no connection within|connection is closed/i,
    "start Redis, or correct KONVERGE_REDIS_URL",
  ],
  [
    /no answer (?:within|in time)/,
    "Redis or this process is stalled or overloaded; check the load of both",
  ],
  [
    /All sentinels are unreachable/,
    "the Sentinels do not answer or have no primary of that name; correct the URL",
  ],
];

/** Returns the suggested fix for an error of Redis or of its connection, or undefined. */
function fixFor(message: string): string | undefined {
  return FIXES.find(([word]) => word.test(message))?.[1];
}

/** Returns `redis_unavailable` with the reason and, if known, a suggested fix. `tookMs`: the time of the call, if known. */
export function explainRedisError(
  error: Error,
  retryAfterMs: number,
  tookMs?: number,
): KonvergeError {
  const reason = reasonOf(error, tookMs).replace(/\.$/, "");
  const fix = fixFor(reason);
  return new KonvergeError(
    "redis_unavailable",
    `Redis cannot be used: ${reason}${fix === undefined ? "" : `; ${fix}`}`,
    { cause: error, retryAfterMs },
  );
}

/** An unreachable Redis Cluster has the reason in the error of its last node. */
function reasonOf(error: Error, tookMs: number | undefined): string {
  if (error.message === "Command timed out") {
    return tookMs === undefined ? "no answer in time" : `no answer within ${Math.round(tookMs)} ms`;
  }
  const { lastNodeError } = error as { readonly lastNodeError?: unknown };
  return lastNodeError instanceof Error
    ? `${error.message} ${lastNodeError.message}`
    : error.message;
}
