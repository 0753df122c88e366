import { clusterRoot } from "@konverge/redis";

/** Redis names of a cluster's notifications. */
export interface NotificationNames {
  /** The process that sends the notifications of a subscription; expires. */
  readonly leader: (subscription: string) => string;
  /** Hash of the start of current contention, in epoch ms, by controller and object. */
  readonly contended: string;
  /** Hash of the faults that a receiver has been notified of, by id; expires. */
  readonly told: (subscription: string) => string;
  /** Hash of the start of the open group, in epoch ms, by subscription. */
  readonly groups: string;
  /** Hash of the message that is not delivered yet, by subscription. */
  readonly waiting: string;
  /** Hash of the messages (JSON), by id. */
  readonly messages: string;
  /** Sorted set of their ids, by time. */
  readonly recent: string;
}

export function notificationNames(prefix: string, cluster: string): NotificationNames {
  const root = `${clusterRoot(prefix, cluster)}/notify`;
  return {
    leader: (subscription) => `${root}/leader/${subscription}`,
    contended: `${root}/contended`,
    told: (subscription) => `${root}/told/${subscription}`,
    groups: `${root}/groups`,
    waiting: `${root}/waiting`,
    messages: `${root}/messages`,
    recent: `${root}/recent`,
  };
}
