/** More would only cost connections: each shard of each controller has some of its own, in every process. */
const MAX_SHARDS = 64;

/** What is wrong with a number of shards; undefined when it is fine. */
export function findShardsIssue(shards: unknown): string | undefined {
  if (Number.isSafeInteger(shards) && Number(shards) >= 1 && Number(shards) <= MAX_SHARDS) return;
  return `is ${String(shards)}; write a whole number from 1 to ${MAX_SHARDS}`;
}

/**
 * The shard of a key, from 0: FNV-1a (RFC 9923) over its canonical text, modulo the number of shards. The same in every
 * process and version, or a key would run in two shards at once (P2).
 */
export function shardOf(id: string, shards: number): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < id.length; index += 1) {
    // Canonical keys are ASCII.
    hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0) % shards;
}
