import { defined } from "@konverge/core";
import type { Settings } from "@konverge/contracts";
import { startPlanner, type Log, type Planner } from "@konverge/engine";
import { bindCluster } from "@konverge/queue";
import { createMetrics } from "@konverge/telemetry";
import type { Config } from "./config/define-config.ts";
import { identityNamespace, readClusterUid } from "./connect-cluster.ts";
import { connectHome, connectorOf, reachClusters } from "./connect-worker.ts";
import { WorkerSetup } from "./worker-setup.ts";

export interface PlannerOptions {
  readonly config: Config;
  /** As for a worker; `cluster` selects the cluster to plan for. */
  readonly settings: Settings;
  readonly version: string;
  readonly log: Log;
  /** The environment in which to find a kubeconfig and a proxy. */
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Plans attempts with the controllers of a configuration in this process, which takes no work and cannot write: its client
 * rejects all calls but reads and dry runs. The calls pass the guard of the workers, whose limits apply.
 * @throws KonvergeError `invalid_config`, `redis_unavailable`, `kube_unreachable`, `cluster_mismatch`, `crd_mismatch`
 */
export async function openPlanner(options: PlannerOptions): Promise<Planner> {
  const { settings, version, log } = options;
  const metrics = createMetrics({ version, installation: settings.prefix });
  const setup = await WorkerSetup.from({ ...options, metrics });
  try {
    return await startOn(setup, log);
  } catch (error) {
    await setup.dispose();
    throw error;
  }
}

async function startOn(setup: WorkerSetup, log: Log): Promise<Planner> {
  const { config, place, namespaces, workerId, options } = setup;
  const connector = { ...connectorOf(setup), isPlanner: true };
  const { client } = await connectHome(setup, connector);
  const uid = await readClusterUid(client, identityNamespace(namespaces, options.settings));
  // The kubeconfig of this process must lead to the cluster of the workers.
  await bindCluster({ ...place, uid, shards: "any" });
  const clusters = reachClusters(setup, client, connector);
  setup.atEnd("connections to other clusters", () => clusters.close());
  const planner = await startPlanner({
    controllers: config.controllers,
    use: config.use,
    cluster: place.cluster,
    client,
    clusters,
    workerId,
    log,
    metrics: options.metrics,
    conflictRetry: options.settings.conflictRetry,
    ...defined({ namespaces }),
  });
  return {
    ...planner,
    async stop() {
      await planner.stop();
      await setup.dispose();
    },
  };
}
