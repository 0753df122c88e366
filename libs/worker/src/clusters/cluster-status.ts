/** The state of a cluster that a worker serves. */
export type ClusterState =
  /** The first lists are being read. */
  | "engaging"
  /** The controllers run on the cluster. */
  | "engaged"
  /** The cluster cannot be used now; the worker tries it again. */
  | "failing"
  /** The provider no longer has the cluster; running attempts end. Waiting keys stay in Redis. */
  | "disengaging";

/** The state of a cluster that the worker serves, as this worker sees it. */
export interface ClusterStatus {
  /** The name of the cluster, as in `key.cluster`. */
  readonly name: string;
  /** The state of the cluster in this worker. */
  readonly state: ClusterState;
  /** The time of the last change of the state. */
  readonly since: Date;
  /** The error of a failing cluster, or of changed credentials that are not used. */
  readonly reason?: string;
  /** Version of the API server, once it is known. */
  readonly serverVersion?: string;
}
