import { clusterRoot } from "@konverge/redis";

/** Redis names of a cluster's notifications. */
export interface NotificationNames {
  /** The process that sends notifications; expires. */
  readonly leader: string;
  /** Hash of the faults that other parts have published, by id. */
  readonly published: string;
  /** Hash of the faults that a receiver has been notified of, by id. */
  readonly told: (receiver: string) => string;
  /** Hash of the start of the open group, in epoch ms, by receiver. */
  readonly groups: string;
  /** Hash of the message that is not delivered yet, by receiver. */
  readonly waiting: string;
  /** Hash of the messages (JSON), by id. */
  readonly messages: string;
  /** Sorted set of their ids, by time. */
  readonly recent: string;
}

export function notificationNames(prefix: string, cluster: string): NotificationNames {
  const root = `${clusterRoot(prefix, cluster)}/notify`;
  return {
    leader: `${root}/leader`,
    published: `${root}/published`,
    told: (receiver) => `${root}/told/${receiver}`,
    groups: `${root}/groups`,
    waiting: `${root}/waiting`,
    messages: `${root}/messages`,
    recent: `${root}/recent`,
  };
}
