import { RESTORE_KINDS, type RestoreKind } from "@konverge/core";
import { clusterRoot, type RedisClient } from "@konverge/redis";

/** The kinds of work that a queue can have. */
export type QueueKind = "keys" | "runs";

/** Time by which the data of Redis may be older than known before it counts as restored, in ms. */
export const RESTORE_TOLERANCE_MS = 60_000;

/** The restore state of a cluster, or of the tokens of an installation. */
export interface RestoreState {
  /** Empty unless Redis was restored and an operator has not accepted it yet. */
  readonly held: readonly RestoreKind[];
  /** The last restore that was detected. */
  readonly last?: {
    readonly detectedAtMs: number;
    /** The worker that has detected it. */
    readonly by: string;
    /** The writes between these times are lost. */
    readonly lostFromMs: number;
    readonly lostToMs: number;
    readonly acceptedAtMs?: number;
    readonly acceptedBy?: string;
  };
  /** The time up to which the data is known to be complete; undefined if no worker has ever noted it. */
  readonly progressMs: number | undefined;
}

/** Hash of the restore state of a cluster. */
export function restoreKey(prefix: string, cluster: string): string {
  return `${clusterRoot(prefix, cluster)}/restore`;
}

/** Hash of the restore state of the tokens of an installation. */
export function tokensRestoreKey(prefix: string): string {
  return `${prefix}:restore`;
}

/** Names of the hashes with the progress of each part of a cluster that a Redis Cluster may keep on its own node. */
export function progressKeys(prefix: string, cluster: string, shards: number): string[] {
  const numbers = shards === 1 ? [undefined] : Array.from({ length: shards }, (_, at) => at);
  return [
    ...numbers.map((shard) => `${clusterRoot(prefix, cluster, shard)}/progress`),
    // Beside the runs, as in the names of the package workflow.
    `${prefix}:{${encodeURIComponent(cluster)}/workflows}/progress`,
  ];
}

/** The kinds of work that do not start while `held` are held. A pause or an isolation that the restore lost may concern any work. */
export function heldQueues(held: readonly RestoreKind[]): QueueKind[] {
  const isAllHeld = held.includes("pauses") || held.includes("guard");
  return (["keys", "runs"] as const).filter((kind) => isAllHeld || held.includes(kind));
}

export function kindsIn(text: string): RestoreKind[] {
  const words = text.split(" ");
  return RESTORE_KINDS.filter((kind) => words.includes(kind));
}

/** Reads a restore state. @throws the errors of Redis */
export async function readRestoreState(redis: RedisClient, key: string): Promise<RestoreState> {
  const stored = await redis.hgetall(key);
  const number = (name: string) => (stored[name] === undefined ? undefined : Number(stored[name]));
  const detectedAtMs = number("heldAt");
  const [acceptedAtMs, acceptedBy] = [number("acceptedAt"), stored["acceptedBy"]];
  return {
    held: kindsIn(stored["held"] ?? ""),
    progressMs: number("progress"),
    ...(detectedAtMs !== undefined && {
      last: {
        detectedAtMs,
        by: stored["heldBy"] ?? "",
        lostFromMs: number("lostFrom") ?? 0,
        lostToMs: number("lostTo") ?? 0,
        ...(acceptedAtMs !== undefined &&
          acceptedAtMs >= detectedAtMs && { acceptedAtMs, acceptedBy: acceptedBy ?? "" }),
      },
    }),
  };
}
