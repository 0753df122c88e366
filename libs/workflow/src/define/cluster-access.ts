import type { KubeClient } from "@konverge/kube";

/** The API servers that runs may work on. */
export interface ClusterAccess {
  /** The cluster that is meant where none is said. */
  readonly home: string;
  /**
   * A client whose calls ask that cluster's guard.
   * @throws KonvergeError `invalid_request` naming the clusters there are
   */
  client(cluster: string): Promise<KubeClient>;
}
