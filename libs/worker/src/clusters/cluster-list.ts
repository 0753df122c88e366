import type { ClusterOptions } from "../config/cluster-options.ts";
import type { Config } from "../config/define-config.ts";
import { isClusterProvider, namesOfClusters, type ClusterProvider } from "./cluster-provider.ts";

/** The listed clusters that a worker serves; none with a provider. */
export function servedClusters(
  { clusters }: Pick<Config, "clusters">,
  { cluster }: { readonly cluster?: string | undefined },
): readonly string[] {
  if (cluster !== undefined) return isClusterProvider(clusters) ? [] : [cluster];
  return namesOfClusters(clusters);
}

/** Provides the clusters that a configuration lists. They do not change. */
export function clusterList(clusters: Readonly<Record<string, ClusterOptions>>): ClusterProvider {
  return {
    description: "configuration",
    async follow({ onClusters }) {
      const listed = Object.entries(clusters);
      onClusters(
        new Map(listed.map(([name, options]) => [name, { kubeconfig: undefined, options }])),
      );
    },
  };
}
