/** The faults that notifications report. */
export const NOTIFICATION_EVENTS = [
  "dead_letter",
  "run_blocked",
  "approval",
  "contention",
  "breaker_open",
] as const;

export type NotificationEvent = (typeof NOTIFICATION_EVENTS)[number];

/** The formats of notifications. */
export const NOTIFICATION_FORMATS = ["slack", "json", "alertmanager"] as const;

export type NotificationFormat = (typeof NOTIFICATION_FORMATS)[number];

/** `waiting`: not accepted by the receiver yet. `failed`: rejected, or not accepted before the deadline. */
export const NOTIFICATION_STATES = ["waiting", "sent", "failed"] as const;

export type NotificationState = (typeof NOTIFICATION_STATES)[number];

/** A fault that users are notified of, from its beginning to its end. */
export interface Fault {
  readonly event: NotificationEvent;
  /** The key, the run, the object or the cluster. Unique among the faults of the event. */
  readonly subject: string;
  /** The controller, the workflow or the kind by which faults are counted. */
  readonly group: string;
  /** One sentence. It leaves the installation, so it must not contain error texts or values of objects. */
  readonly summary: string;
  /** Epoch ms. */
  readonly sinceMs: number;
}
