/** Limits connections: every process has some per controller and shard. */
const MAX_SHARDS = 64;

/** Returns the error in a number of shards, or undefined. */
export function findShardsIssue(shards: unknown): string | undefined {
  if (Number.isSafeInteger(shards) && Number(shards) >= 1 && Number(shards) <= MAX_SHARDS) return;
  return `must be an integer from 1 to ${MAX_SHARDS} (got ${String(shards)})`;
}

/**
 * The shard of a key, from 0: FNV-1a (RFC 9923) over its canonical text, modulo the number of shards. Must
 * not differ between processes and versions, or a key would run in two shards at once (P2).
 */
export function shardOf(id: string, shards: number): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < id.length; index += 1) {
    // Canonical keys are ASCII.
    hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0) % shards;
}
