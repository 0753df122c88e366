import type { Settings } from "@konverge/contracts";
import type { Log } from "@konverge/engine";
import { createClusterRegistry, type ClusterRegistry, type ReportedCluster } from "@konverge/queue";
import type { ClusterStatus } from "./cluster-status.ts";

/** Opens the list of the clusters that the workers of the installation serve. */
export function openRegistry(
  { settings, log }: { readonly settings: Settings; readonly log: Log },
  workerId: string,
): ClusterRegistry {
  return createClusterRegistry({
    redis: { url: settings.redisUrl },
    prefix: settings.prefix,
    workerId,
    onError: (error) => log.warn({ err: error }, "cluster registry error"),
  });
}

/** The statuses as other processes read them. */
export function reported(clusters: readonly ClusterStatus[], source: string): ReportedCluster[] {
  return clusters.map(({ since, ...status }) => ({
    ...status,
    source,
    since: since.toISOString(),
  }));
}
