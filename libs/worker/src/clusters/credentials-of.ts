import { defined } from "@konverge/core";
import type { KubeCredentialsOptions } from "@konverge/kube";
import type { ProvidedCluster } from "./cluster-provider.ts";

/** The source of the credentials of a provided cluster; undefined for a cluster that its options address. */
export function credentialsOf({
  kubeconfig,
  options,
}: ProvidedCluster): KubeCredentialsOptions | undefined {
  if (kubeconfig === undefined) return undefined;
  const { text, directory, confined } = kubeconfig;
  return {
    kubeconfigText: text,
    ...defined({ kubeconfigTextDirectory: directory, confined, context: options.context }),
  };
}
