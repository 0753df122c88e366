import type {
  Fault,
  NotificationEvent,
  NotificationFormat,
  NotificationState,
} from "@konverge/core";

/** The faults of one event and group in a message. */
export interface FaultGroup {
  readonly event: NotificationEvent;
  readonly group: string;
  /** New faults. */
  readonly firing: number;
  /** Faults that have ended. */
  readonly resolved: number;
  /** Faults that exist at the time of the message. */
  readonly open: number;
  /** The start of the oldest of them, in epoch ms. */
  readonly sinceMs: number;
}

/** One try to deliver a message. */
export interface NotificationTry {
  readonly atMs: number;
  /** HTTP status; missing without an answer. */
  readonly status?: number;
  /** The start of the answer, without secrets of the receiver. */
  readonly answer?: string;
  readonly error?: string;
}

/** A message to a receiver, with its deliveries. It contains no address and no header of the receiver. */
export interface NotificationRecord {
  /** The deduplication key: the same in every try. */
  readonly id: string;
  readonly receiver: string;
  /** The receiver and its events. Deployments with different events for a receiver have different subscriptions. */
  readonly subscription: string;
  readonly format: NotificationFormat;
  readonly state: NotificationState;
  readonly createdAtMs: number;
  /** The time after which it is no longer tried. */
  readonly deadlineMs: number;
  readonly groups: readonly FaultGroup[];
  /** Some of the new faults. */
  readonly examples: readonly Fault[];
  /** The number of tries. */
  readonly tries: number;
  /** The last ones, oldest first. */
  readonly lastTries: readonly NotificationTry[];
  readonly nextAtMs?: number;
  readonly endedAtMs?: number;
}
