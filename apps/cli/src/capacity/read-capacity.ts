import type { QueueAccess } from "@konverge/api";
import type { Settings } from "@konverge/contracts";
import { RUN_STATUSES } from "@konverge/core";
import { estimateMemory, type CapacityCounts, type CapacityEstimate } from "./estimate.ts";
import { redisOfCommand } from "../process/redis-of-command.ts";

const BYTES_PER_MIB = 1_048_576;

export interface CapacityReport {
  readonly clusters: readonly (CapacityCounts &
    CapacityEstimate & {
      readonly cluster: string;
      /** Missing before the first worker. */
      readonly calls?: {
        /** The current and the highest rate, in calls per second. */
        readonly rate: number;
        readonly limit: number;
        /** Decaying count of the last seconds. */
        readonly recent: number;
      };
    })[];
  /** Of the whole server, with all clusters and other users; `maxBytes` is 0 without a limit. Null if Redis does not report it. */
  readonly redis: { readonly usedBytes: number | null; readonly maxBytes: number | null };
  readonly estimatedBytes: number;
}

/** Counts the data of clusters in Redis, and estimates its memory. @throws KonvergeError `redis_unavailable` */
export async function readCapacity(
  access: QueueAccess,
  { redisUrl, prefix, historyLimitMiB }: Pick<Settings, "redisUrl" | "prefix" | "historyLimitMiB">,
  names: readonly string[],
): Promise<CapacityReport> {
  const { openGuardControl } = await import("@konverge/guard");
  await using guards = openGuardControl({ redis: redisOfCommand(redisUrl), prefix });
  const clusters = await Promise.all(
    names.map(async (cluster) => {
      const counts = await readCounts(access, cluster);
      const guard = await guards.read(cluster);
      return {
        cluster,
        ...counts,
        ...estimateMemory(counts, historyLimitMiB * BYTES_PER_MIB),
        ...(guard && {
          calls: {
            rate: guard.rate.current,
            limit: guard.rate.limits.ratePerSecond,
            recent: guard.breaker.recent.calls,
          },
        }),
      };
    }),
  );
  const { usedBytes = null, maxBytes = null } = await access.readServer();
  const estimatedBytes = clusters.reduce((sum, { totalBytes }) => sum + totalBytes, 0);
  return { clusters, redis: { usedBytes, maxBytes }, estimatedBytes };
}

async function readCounts(access: QueueAccess, cluster: string): Promise<CapacityCounts> {
  let [keys, waiting] = [0, 0];
  for (const { name } of await access.controllers(cluster)) {
    const { queue } = await access.find(cluster, name);
    for await (const page of queue.listKeys()) keys += page.length;
    const counts = await queue.counts();
    waiting += counts.waiting + counts.active + counts.delayed;
  }
  let [liveRuns, endedRuns] = [0, 0];
  const { workflows, announced } = await access.runs(cluster);
  for (const name of announced.keys()) {
    const counts = await workflows.counts(name);
    const ended = counts.done + counts.failed + counts.cancelled;
    endedRuns += ended;
    liveRuns += RUN_STATUSES.reduce((sum, status) => sum + counts[status], 0) - ended;
  }
  return { keys: Math.max(keys, waiting), waiting, liveRuns, endedRuns };
}
