import { matchesLabels, parseLabelSelector } from "@konverge/kube";
import type { ClusterSelection } from "./controller-options.ts";

/** True if a controller with this selection runs on the cluster. */
export function selectsCluster(
  { names, labels }: ClusterSelection,
  cluster: string,
  clusterLabels: Readonly<Record<string, string>> = {},
): boolean {
  if (names !== undefined && !names.includes(cluster)) return false;
  if (labels === undefined) return true;
  const selector = parseLabelSelector(labels);
  return selector !== undefined && matchesLabels(selector, clusterLabels);
}
