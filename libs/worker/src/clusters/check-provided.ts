import { invalidConfig } from "@konverge/core";
import { loadKubeCredentials } from "@konverge/kube";
import { findClusterIssues } from "../config/cluster-options.ts";
import { credentialsOf } from "./credentials-of.ts";
import type { ProvidedCluster } from "./cluster-provider.ts";

/**
 * Returns the cluster if its options and its kubeconfig are valid. A file that is not complete yet is usually rejected here.
 * @throws KonvergeError `invalid_config`
 */
export function checkProvided(name: string, cluster: ProvidedCluster): ProvidedCluster {
  const { options } = cluster;
  const issues = findClusterIssues({ [name]: options });
  if (issues.length === 0 && "kubeconfig" in options) {
    const detail = `clusters.${name}.kubeconfig: is read by the provider; omit it`;
    issues.push({ pointer: `/clusters/${name}/kubeconfig`, detail });
  }
  if (issues.length > 0) throw invalidConfig(issues);
  loadKubeCredentials({ ...credentialsOf(cluster), env: {} });
  return cluster;
}
