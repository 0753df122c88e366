/** The sources of a reconcile request. There are no event types: handlers are level-triggered. */
export const TRIGGER_KINDS = [
  "watch",
  "resync",
  "http",
  "cli",
  "schedule",
  "owner",
  "retry",
  "signal",
] as const;

export type TriggerKind = (typeof TRIGGER_KINDS)[number];

export interface Trigger {
  readonly kind: TriggerKind;
  /** For display: the watch, user or system. */
  readonly by?: string;
  /** For display: the reason. */
  readonly reason?: string;
  /** Version of the reconciled object that was observed; the read must be at least as new. */
  readonly resourceVersion?: string;
  readonly generation?: number;
  /** Version of another object, such as a child, whose change caused the request. Identifies the writer; the read ignores it. */
  readonly version?: string;
  /**
   * Versions that the requester's watches had reached, by `plural.group`. A list that the attempt takes from a cache must be as
   * new, or it would miss the change that caused the attempt.
   */
  readonly seen?: Readonly<Record<string, string>>;
  /** W3C trace context of the request. */
  readonly traceparent?: string;
}
