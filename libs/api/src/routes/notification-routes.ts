import {
  notificationListSchema,
  notificationQuerySchema,
  type NotificationView,
} from "@konverge/contracts";
import { defined, isoTime } from "@konverge/core";
import type { NotificationRecord } from "@konverge/queue";
import { demand } from "../access/caller.ts";
import { readRoute, type Route } from "../http/route.ts";
import type { QueueAccess } from "../queues/queue-access.ts";

/** In simple requests: up to 1,000 messages are read. */
const PRICE = 10;
const MOST = 1_000;

/** The notifications of a cluster. */
export function notificationRoutes(access: QueueAccess, home: string): Route[] {
  return [
    readRoute({
      id: "listNotifications",
      path: "/v1/notifications",
      summary: "List notifications about faults with their deliveries, newest first",
      query: notificationQuerySchema,
      answer: notificationListSchema,
      problems: ["not_found"],
      price: () => PRICE,
      async handle({ query: { cluster = home, state, limit }, caller }) {
        // A message is about objects and runs of all controllers and namespaces.
        demand(caller, { cluster });
        const store = await access.notifications(cluster);
        const found = await store.list(state === undefined ? limit : MOST);
        const items = found.filter((each) => state === undefined || each.state === state);
        return { items: items.slice(0, limit).map((each) => notificationView(each, cluster)) };
      },
    }),
  ];
}

function notificationView(
  {
    createdAtMs,
    deadlineMs,
    nextAtMs,
    endedAtMs,
    groups,
    examples,
    lastTries,
    ...record
  }: NotificationRecord,
  cluster: string,
): NotificationView {
  const { subscription: _, ...rest } = record;
  return {
    ...rest,
    cluster,
    createdAt: isoTime(createdAtMs),
    deadline: isoTime(deadlineMs),
    groups: groups.map(({ sinceMs, ...group }) => ({ ...group, since: isoTime(sinceMs) })),
    examples: examples.map(({ sinceMs, ...fault }) => ({ ...fault, since: isoTime(sinceMs) })),
    lastTries: lastTries.map(({ atMs, ...each }) => ({ at: isoTime(atMs), ...each })),
    ...defined({
      nextAt: isoTime(nextAtMs),
      endedAt: isoTime(endedAtMs),
    }),
  };
}
