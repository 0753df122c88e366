import type { NotificationView } from "@konverge/contracts";
import { age } from "./age.ts";
import { columns } from "./columns.ts";
import { plain } from "./plain-text.ts";

const HEAD = ["NOTIFICATION", "RECEIVER", "STATE", "NEW", "RESOLVED", "TRIES", "ANSWER", "AGE"];

/** Formats notifications, a line each. */
export function notificationRows(notifications: readonly NotificationView[]): string {
  return columns([
    HEAD,
    ...notifications.map(({ id, receiver, state, groups, tries, lastTries, createdAt }) => {
      const last = lastTries.at(-1);
      return [
        id,
        receiver,
        state,
        String(groups.reduce((sum, { firing }) => sum + firing, 0)),
        String(groups.reduce((sum, { resolved }) => sum + resolved, 0)),
        String(tries),
        plain(last?.error ?? (last?.status === undefined ? "-" : `HTTP ${last.status}`)),
        age(createdAt),
      ];
    }),
  ]);
}
