import { isClusterProvider } from "./clusters/cluster-provider.ts";
import { openFleetWorker } from "./clusters/fleet-worker.ts";
import { openClusterWorker, type OpenWorker } from "./cluster-worker.ts";
import type { OpenWorkerOptions } from "./worker-setup.ts";

/**
 * Runs the controllers and workflows of a configuration on one cluster, or on all clusters of its provider. On one cluster, in
 * this order: validates the configuration, connects to Redis and the API server (and waits while the circuit breaker is open),
 * binds the cluster, takes part in leader elections, and takes work.
 * @throws KonvergeError `invalid_config`, `redis_unavailable`, `kube_unreachable`, `cluster_mismatch`, `shards_mismatch`,
 * `crd_mismatch` or `forbidden`, before any work is taken
 */
export async function openWorker(options: OpenWorkerOptions): Promise<OpenWorker> {
  const { clusters } = options.config;
  return isClusterProvider(clusters)
    ? await openFleetWorker(options, clusters)
    : await openClusterWorker(options);
}
