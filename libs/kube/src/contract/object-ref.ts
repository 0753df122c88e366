/** A reference that steps return: the identity and version of an object, never its contents (P12). */
export type ObjectRef = {
  /** Name of the cluster in the configuration. Default: the run's cluster. */
  readonly cluster?: string;
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
  /** Grows with each change of the spec; absent for kinds without a generation. */
  readonly generation?: number;
  readonly resourceVersion: string;
  /** Whether the step of the verb created the object; absent in refs that no writing verb returned. */
  readonly created?: boolean;
};
