import type { OverviewProblem } from "@konverge/contracts";
import type { RestoreState, ServerState } from "@konverge/queue";
import { sinceMs } from "./problem-text.ts";

/** The thresholds of the alerts KonvergeRedisMemory and KonvergeRedisFull. */
export const HIGH_MEMORY = 0.8;
const FULL_MEMORY = 0.9;
const MIB = 2 ** 20;

/** The Redis server of a cluster. */
export interface FoundRedis extends Pick<ServerState, "usedBytes" | "maxBytes"> {
  /** Since when its memory has been high. */
  readonly highMs?: number | undefined;
}

/** Returns the part of `maxmemory` that Redis uses; 0 without a limit. */
export function memoryShareOf({
  usedBytes = 0,
  maxBytes = 0,
}: Pick<ServerState, "usedBytes" | "maxBytes">): number {
  return maxBytes === 0 ? 0 : usedBytes / maxBytes;
}

/** Returns true if Redis rejects writes, also the heartbeats of workers. */
export function isFull(redis: FoundRedis): boolean {
  return memoryShareOf(redis) >= 1;
}

/** Returns the memory problem of Redis. */
export function findMemoryProblems(redis: FoundRedis): OverviewProblem[] {
  const share = memoryShareOf(redis);
  if (share <= HIGH_MEMORY) return [];
  const [used = 0, max = 0] = [redis.usedBytes, redis.maxBytes].map((bytes = 0) =>
    Math.round(bytes / MIB),
  );
  return [
    {
      code: "redis_memory",
      level: share > FULL_MEMORY ? "error" : "warning",
      message: `Redis uses ${Math.round(share * 100)} % of its memory`,
      ...sinceMs(redis.highMs),
      cause: `${used} of ${max} MiB are used`,
      consequence: isFull(redis)
        ? "New requests are rejected, and no work starts. No accepted request is lost."
        : "The oldest records are dropped. At 100 %, new requests are rejected.",
      action: "Raise `maxmemory`; `konverge capacity` shows what uses it",
    },
  ];
}

/** Returns the restore of Redis that no operator has accepted completely. */
export function findRestoreProblems({ held, last }: RestoreState): OverviewProblem[] {
  if (held.length === 0 || last === undefined) return [];
  const [from, to] = [last.lostFromMs, last.lostToMs].map((ms) => new Date(ms).toISOString());
  return [
    {
      code: "restored",
      level: "error",
      message: `Redis was restored; held: ${held.join(", ")}`,
      since: new Date(last.detectedAtMs).toISOString(),
      cause: `Writes from ${from} to ${to} are lost`,
      consequence:
        "Held work does not start. If it is accepted without a check, effects may be repeated.",
      action: "Run `konverge restore check`, then `konverge restore accept`",
    },
  ];
}
