import { clusterList, servedClusters } from "./clusters/cluster-list.ts";
import { clusterOf } from "@konverge/contracts";
import { isClusterProvider, type ClusterProvider } from "./clusters/cluster-provider.ts";
import { openFleetWorker } from "./clusters/fleet-worker.ts";
import type { OpenWorker } from "./cluster-worker.ts";
import { openOnlyCluster } from "./clusters/only-cluster.ts";
import { onceReachable } from "./once-reachable.ts";
import type { OpenWorkerOptions } from "./worker-setup.ts";

/**
 * Runs the controllers and workflows of a configuration on all clusters of its list or provider, or on the only or selected one. On
 * one cluster, in this order: validates the configuration, connects to Redis and the API server (and waits while the circuit breaker
 * is open), binds the cluster, takes part in leader elections, and takes work. A start that cannot reach Redis or the API server is
 * repeated for `startTimeout`.
 * @throws KonvergeError `invalid_config`, `redis_unavailable`, `redis_unsupported`. On one cluster also `kube_unreachable`,
 * `cluster_mismatch`, `duplicate_cluster`, `shards_mismatch`, `crd_mismatch` or `forbidden`, before any work is taken
 */
export async function openWorker(options: OpenWorkerOptions): Promise<OpenWorker> {
  const { config, settings } = options;
  const { clusters } = config;
  const { log, stopping } = options;
  const waiting = { limitMs: settings.startTimeout, log, stopping };
  const openFleet = (provider: ClusterProvider) =>
    onceReachable(() => openFleetWorker(options, provider), waiting);
  if (isClusterProvider(clusters)) return await openFleet(clusters);
  const [cluster, ...others] = servedClusters(config, settings);
  if (others.length > 0) return await openFleet(clusterList(clusters));
  const only = { ...options, settings: { ...settings, cluster } };
  // Between two tries, the worker is not ready, but not missing either.
  const unobserve = options.metrics
    .ofCluster(clusterOf(only.settings))
    .observeWorker({ role: settings.role, isReady: () => false });
  try {
    return await onceReachable(() => openOnlyCluster(only), waiting);
  } finally {
    unobserve();
  }
}
