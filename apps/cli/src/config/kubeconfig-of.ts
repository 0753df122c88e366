import { defined } from "@konverge/core";
import { clusterOf, type Settings } from "@konverge/contracts";
import { credentialsFrom, optionsOfCluster, type Config } from "@konverge/worker";
import type { KubeCredentialsOptions } from "@konverge/kube";

/** Returns the kubeconfig of a worker with this configuration, so that commands use the same API server. */
export function kubeconfigOf(
  settings: Settings,
  config: Pick<Config, "clusters"> | undefined,
): KubeCredentialsOptions {
  const cluster = config && optionsOfCluster(config.clusters, clusterOf(settings));
  const context = cluster?.context ?? settings.context;
  return {
    ...credentialsFrom(cluster?.kubeconfig ?? settings.kubeconfig),
    ...defined({ context }),
  };
}
