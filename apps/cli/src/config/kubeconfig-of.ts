import { defined } from "@konverge/core";
import type { Settings } from "@konverge/contracts";
import type { Config } from "@konverge/worker";
import type { KubeconfigOptions } from "@konverge/kube";

/** Returns the kubeconfig of a worker with this configuration, so that commands use the same API server. */
export function kubeconfigOf(
  settings: Settings,
  config: Pick<Config, "clusters"> | undefined,
): KubeconfigOptions {
  const cluster = config?.clusters[settings.cluster];
  const kubeconfigPath = cluster?.kubeconfig ?? settings.kubeconfig;
  const context = cluster?.context ?? settings.context;
  return defined({ kubeconfigPath, context });
}
