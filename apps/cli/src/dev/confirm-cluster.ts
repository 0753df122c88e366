import { defined } from "@konverge/core";
import { loadKubeCredentials } from "@konverge/kube";
import { confirm } from "../ask/confirm.ts";

export interface ConfirmClusterOptions {
  readonly kubeconfig: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Asks the user whether to run controllers on the cluster of the kubeconfig.
 * @throws KonvergeError `invalid_request` if the user declines, or without a terminal
 */
export async function confirmCluster({ kubeconfig, signal }: ConfirmClusterOptions): Promise<void> {
  const { context, server } = loadKubeCredentials(defined({ kubeconfigPath: kubeconfig }));
  const what = `run the controllers on context "${context}" (${server}) and apply their CRDs there`;
  await confirm({ what, by: "--cluster kubeconfig", signal });
}
