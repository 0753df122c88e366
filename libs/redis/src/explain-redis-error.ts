import { KonvergeError } from "@konverge/core";

/** What Redis says first when it refuses, and what a person can do about it. */
const FIXES: readonly (readonly [RegExp, string])[] = [
  [
    /\bOOM\b/,
    "it is full: give it more memory (CONFIG SET maxmemory), or room by deleting what is not Konverge's",
  ],
  [
    /\bREADONLY\b/,
    "it is a replica: name the primary, or the Sentinels, in the URL; a failover under way passes by itself",
  ],
  [
    /\bMISCONF\b/,
    "it cannot save to its disk: make room there or correct its directory; its log says what failed",
  ],
  [/\bBUSY\b/, "somebody's script blocks it: wait for its end, or send SCRIPT KILL"],
  [/\bLOADING\b/, "it reads its data back: wait"],
  [
    /\bMASTERDOWN\b/,
    "it is a replica that lost its primary: wait for the failover, or name the primary in the URL",
  ],
  [/\bNOREPLICAS\b/, "too few replicas are connected (min-replicas-to-write): bring them back"],
  [
    /\bCLUSTERDOWN\b/,
    "a part of the Redis Cluster has no primary: start the node that is down, or let its replica take over",
  ],
  [
    /\bMOVED\b/,
    "it is a node of a Redis Cluster: write its URL as redis+cluster://host:port,host:port",
  ],
  [/cluster support disabled/, "it is no Redis Cluster: write its URL as redis://host:port"],
  [/\b(NOAUTH|WRONGPASS)\b/, "the user or the password in the URL is wrong or missing"],
  [
    /\bNOPERM\b/,
    "its ACL does not let this user do that: allow the keys and channels under the prefix",
  ],
  [
    /ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENOENT|no answer within|connection is closed/i,
    "start it, or correct KONVERGE_REDIS_URL",
  ],
  [
    /All sentinels are unreachable/,
    "the Sentinels do not answer, or do not know the primary by that name: correct the URL",
  ],
];

/** The cure for what Redis, or the way to it, refused; undefined where none is known. */
function fixFor(message: string): string | undefined {
  return FIXES.find(([word]) => word.test(message))?.[1];
}

/** `redis_unavailable` with the reason and, where one is known, the cure. */
export function explainRedisError(error: Error, retryAfterMs: number): KonvergeError {
  const reason = reasonOf(error).replace(/\.$/, "");
  const fix = fixFor(reason);
  return new KonvergeError(
    "redis_unavailable",
    `Redis cannot be used: ${reason}${fix === undefined ? "" : `; ${fix}`}`,
    { cause: error, retryAfterMs },
  );
}

/** A Redis Cluster that cannot be reached says so in the error of the last node. */
function reasonOf(error: Error): string {
  const { lastNodeError } = error as { readonly lastNodeError?: unknown };
  return lastNodeError instanceof Error
    ? `${error.message} ${lastNodeError.message}`
    : error.message;
}
