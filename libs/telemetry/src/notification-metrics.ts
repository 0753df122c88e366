import { Counter, Gauge, type Registry } from "prom-client";
import { Observed } from "./observed.ts";

/** A message that its receiver has not accepted yet. */
interface WaitingNotification {
  readonly receiver: string;
  /** Set after a failed try: the time of the message, in epoch ms. */
  readonly failingSinceMs: number | undefined;
}

/** The metrics of notifications. */
export interface NotificationMetrics {
  /** Counts a message that was accepted, or is no longer tried. */
  notificationEnded(receiver: string, result: "sent" | "failed"): void;
  /** Reports undelivered messages at each scrape. Returns the function that ends it. */
  observeNotifications(
    receivers: readonly string[],
    waiting: () => readonly WaitingNotification[],
  ): () => void;
}

export function createNotificationMetrics(
  registry: Registry,
): (cluster: string) => NotificationMetrics {
  const registers = [registry];
  const labelNames = ["cluster", "receiver"] as const;
  const ended = new Counter({
    name: "konverge_notifications_total",
    help: "Total number of notifications by result.",
    labelNames: [...labelNames, "result"],
    registers,
  });
  const observed = new Observed<{
    readonly receivers: readonly string[];
    readonly waiting: () => readonly WaitingNotification[];
  }>();
  const waiting: Gauge<(typeof labelNames)[number]> = new Gauge({
    name: "konverge_notifications_waiting",
    help: "Notifications that their receiver has not accepted yet.",
    labelNames,
    registers,
    collect() {
      waiting.reset();
      for (const [{ cluster }, each] of observed) {
        for (const { receivers, waiting: read } of each) {
          for (const receiver of receivers) waiting.set({ cluster, receiver }, 0);
          for (const { receiver } of read()) waiting.inc({ cluster, receiver });
        }
      }
    },
  });
  const failing: Gauge<(typeof labelNames)[number]> = new Gauge({
    name: "konverge_notification_failing_seconds",
    help: "Age of the notification whose delivery fails, else 0.",
    labelNames,
    registers,
    collect() {
      failing.reset();
      for (const [{ cluster }, each] of observed) {
        for (const { receivers, waiting: read } of each) {
          for (const receiver of receivers) failing.set({ cluster, receiver }, 0);
          for (const { receiver, failingSinceMs } of read()) {
            const ageMs = failingSinceMs === undefined ? 0 : Date.now() - failingSinceMs;
            failing.set({ cluster, receiver }, ageMs / 1_000);
          }
        }
      }
    },
  });
  return (cluster) => ({
    notificationEnded(receiver, result) {
      ended.inc({ cluster, receiver, result });
    },
    observeNotifications(receivers, read) {
      for (const receiver of receivers) {
        for (const result of ["sent", "failed"]) ended.inc({ cluster, receiver, result }, 0);
      }
      return observed.add({ cluster, name: receivers.join(",") }, { receivers, waiting: read });
    },
  });
}
