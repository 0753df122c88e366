/** Whether the controllers run on a cluster of a provider. */
export type ClusterState =
  /** The first lists are being read. */
  | "engaging"
  | "engaged"
  /** The cluster cannot be used at the moment; it is tried again. */
  | "failing"
  /** Running attempts end. */
  | "disengaging"
  /** The provider no longer has it. Waiting keys stay in Redis. */
  | "removed";

/** The state of a cluster of a provider, as this worker sees it. */
export interface ClusterStatus {
  /** As in `key.cluster`. */
  readonly name: string;
  /** Whether the controllers run on it. */
  readonly state: ClusterState;
  /** Since when it has this state. */
  readonly since: Date;
  /** Why it fails, or why changed credentials are not used. */
  readonly reason?: string;
}
