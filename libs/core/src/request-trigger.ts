/** Who or what wished a reconcile. Never says create, update or delete: a handler looks at the state instead. */
export type TriggerKind =
  | "watch"
  | "resync"
  | "http"
  | "cli"
  | "schedule"
  | "owner"
  | "retry"
  | "signal";

export interface Trigger {
  readonly kind: TriggerKind;
  /** For people: which watch, user or system. */
  readonly by?: string;
  /** For people: why. */
  readonly reason?: string;
  /** Version of the object that was seen; a floor for the read. Only from the reconciled object itself. */
  readonly resourceVersion?: string;
  readonly generation?: number;
  /** Version of another object whose change this is about, such as a child's. No floor, but it tells whose write it was. */
  readonly version?: string;
  /**
   * How far the watches of whoever requests had come, by `plural.group`. A list that an attempt for this takes from a cache must
   * have come as far, or it would miss the very change that it runs for.
   */
  readonly seen?: Readonly<Record<string, string>>;
  /** W3C trace context of the request. */
  readonly traceparent?: string;
}
