/** An object as steps hand it on: what names it and which state of it was seen, never what it holds (P12). */
export type ObjectRef = {
  /** Name of the cluster in the configuration. Absent: the one that the run belongs to. */
  readonly cluster?: string;
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for objects of the whole cluster. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
  /** Grows with each change of the spec; absent for kinds that do not count. */
  readonly generation?: number;
  readonly resourceVersion: string;
};
