import { KonvergeError } from "@konverge/core";
import type { ClusterProvider, ProvidedCluster, ProvidedClusters } from "./cluster-provider.ts";

/** The clusters that a worker serves. */
export interface ServedClusters {
  readonly clusters: ProvidedClusters;
  /** The error of a cluster with the name of an engaged home cluster, which is served in its place. */
  readonly rejected?: KonvergeError;
}

/**
 * Adds the home cluster, if the controllers run on it. A cluster with its name is rejected: both would share one guard, one queue
 * and one binding in Redis.
 */
export function withHome(
  { home, description }: ClusterProvider,
  clusters: ProvidedClusters,
  name: string,
): ServedClusters {
  if (home === undefined) return { clusters };
  const { engage = false, ...options } = home;
  const own: ProvidedCluster = { kubeconfig: undefined, options };
  const isTaken = clusters.has(name);
  const rejected = new KonvergeError(
    "invalid_config",
    `cluster "${name}" of the ${description} has the name of the home cluster "${name}" (setting cluster); rename it, or set KONVERGE_CLUSTER to another name`,
  );
  if (engage) {
    return { clusters: new Map([...clusters, [name, own]]), ...(isTaken ? { rejected } : {}) };
  }
  return { clusters: isTaken ? new Map([...clusters, [name, rejected]]) : clusters };
}
