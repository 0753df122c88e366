import type { Log } from "@konverge/engine";
import type { Confinement, KubeClient } from "@konverge/kube";
import type { ClusterOptions } from "../config/cluster-options.ts";

/** The limits and labels of a cluster of a provider, which finds the kubeconfig itself. */
export type ProvidedOptions = Omit<ClusterOptions, "kubeconfig">;

/** A kubeconfig that a provider has read. */
export interface ProvidedKubeconfig {
  readonly text: string;
  /** Resolves relative paths in the text. Default: the working directory. */
  readonly directory?: string;
  /** Set for a kubeconfig that others may write. */
  readonly confined?: Confinement;
}

/** A cluster that a provider found. */
export interface ProvidedCluster {
  /** Its text is compared: a change replaces the credentials. Undefined for a cluster that the options address. */
  readonly kubeconfig: ProvidedKubeconfig | undefined;
  /** A change engages the cluster again. */
  readonly options: ClusterOptions;
}

/** The clusters of a provider by name. An error replaces a cluster that exists and cannot be read. */
export type ProvidedClusters = ReadonlyMap<string, ProvidedCluster | Error>;

/** The parts of a worker that a provider uses. */
export interface FollowClustersOptions {
  /** Receives all clusters, first before `follow` resolves, and again after each change. */
  readonly onClusters: (clusters: ProvidedClusters) => void;
  /** Ends the updates. */
  readonly signal: AbortSignal;
  /** The log of the worker. */
  readonly log: Log;
  /** Connects the home cluster of the worker, with the setting `cluster` as its name. */
  readonly connectHome: () => Promise<KubeClient>;
}

/** Finds the clusters of a worker, and follows their changes. */
export interface ClusterProvider {
  /** The source of the clusters, as named in errors and logs, such as `directory clusters`. */
  readonly description: string;
  /** The home cluster, if the provider reads from one. */
  readonly home?: HomeCluster;
  /** The namespace of the home cluster whose Secrets the provider lists and watches. */
  readonly secretsNamespace?: string;
  /**
   * Resolves after the first list of clusters. If clusters cannot be listed later, it reports nothing, so that no cluster is
   * removed because of an error.
   * @throws KonvergeError `invalid_config` if they cannot be listed at all
   */
  follow(options: FollowClustersOptions): Promise<void>;
}

/** The cluster that a provider reads from. */
export interface HomeCluster extends ClusterOptions {
  /** Also runs the controllers on the home cluster. Default: false. */
  readonly engage?: boolean;
}

export function isClusterProvider(value: unknown): value is ClusterProvider {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as Partial<ClusterProvider>).follow === "function" &&
    typeof (value as Partial<ClusterProvider>).description === "string"
  );
}

/** The options of a cluster by name. With a provider, only the home cluster has options. */
export function optionsOfCluster(
  clusters: Readonly<Record<string, ClusterOptions>> | ClusterProvider,
  name: string,
): ClusterOptions | undefined {
  if (isClusterProvider(clusters)) return clusters.home;
  return Object.hasOwn(clusters, name) ? clusters[name] : undefined;
}

/** The names of the clusters in a configuration; none with a provider. */
export function namesOfClusters(
  clusters: Readonly<Record<string, ClusterOptions>> | ClusterProvider,
): string[] {
  return isClusterProvider(clusters) ? [] : Object.keys(clusters);
}
