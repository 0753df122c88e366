import type { KubeClient } from "@konverge/kube";

/** The clusters that runs may use. */
export interface ClusterAccess {
  /** The default cluster. */
  readonly home: string;
  /**
   * Returns a client whose calls pass that cluster's guard.
   * @throws KonvergeError `invalid_request` naming the configured clusters
   */
  client(cluster: string): Promise<KubeClient>;
  /** The namespaces of a cluster that may be accessed. Undefined: all. */
  namespaces?(cluster: string): readonly string[] | undefined;
}
