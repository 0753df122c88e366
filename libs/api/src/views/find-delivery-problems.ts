import type { OverviewProblem } from "@konverge/contracts";
import type { NotificationRecord } from "@konverge/queue";
import type { AuditTargetState } from "../audit/audit-export.ts";
import { count, cut, sinceMs } from "./problem-text.ts";

/** The thresholds of the alerts KonvergeAuditNotDelivered and KonvergeNotifyFailing. */
const LATE_MS = 300_000;
const RECENT_MS = 3_600_000;
/** Lost entries cannot be delivered any more, so they remain a problem for a day. */
const LOST_MS = 24 * RECENT_MS;

/** Finds the targets that do not receive the audit log. */
export function findAuditProblems(
  targets: readonly AuditTargetState[],
  nowMs: number = Date.now(),
): OverviewProblem[] {
  return targets.flatMap(({ sink, lagMs, lost, lostAtMs = -Infinity }): OverviewProblem[] => {
    const name = sink === "file" ? "file" : "receiver";
    const common = { code: "audit_not_delivered", level: "warning", subject: sink } as const;
    const late = lagMs <= LATE_MS ? [] : [lagMs];
    const missing = lost > 0 && nowMs - lostAtMs < LOST_MS ? [lost] : [];
    return [
      ...late.map((ageMs) => ({
        ...common,
        message: `The audit log is not delivered to its ${name}`,
        ...sinceMs(nowMs - ageMs),
        cause: `The ${name} fails, or no API process runs`,
        consequence: "Entries stay in Redis until retention removes them; none is lost so far.",
        action: `Restore the ${name}; the log of the API has the error`,
      })),
      ...missing.map((entries) => ({
        ...common,
        count: entries,
        message: `${entries === 1 ? "1 entry" : `${entries} entries`} of the audit log did not reach its ${name}`,
        ...sinceMs(lostAtMs),
        cause: "Retention removed them from Redis before they were delivered",
        consequence: "They are lost, unless `konverge audit export` saved them.",
        action: `Compare the delivered entries with \`konverge audit verify --file\``,
      })),
    ];
  });
}

/** Finds the receivers that do not accept notifications. */
export function findNotificationProblems(
  notifications: readonly NotificationRecord[],
  nowMs: number = Date.now(),
): OverviewProblem[] {
  const failing = notifications.filter(
    ({ state, tries, createdAtMs, endedAtMs = 0 }) =>
      (state === "waiting" && tries > 0 && nowMs - createdAtMs > LATE_MS) ||
      (state === "failed" && nowMs - endedAtMs < RECENT_MS),
  );
  return [...Map.groupBy(failing, ({ receiver }) => receiver)].map(([receiver, messages]) => {
    const failed = messages.filter(({ state }) => state === "failed").length;
    const last = messages
      .flatMap(({ lastTries }) => lastTries)
      .toSorted((a, b) => b.atMs - a.atMs)[0];
    return {
      code: "notification_failing",
      level: "warning",
      subject: receiver,
      count: messages.length,
      message: `${receiver} does not accept ${count(messages.length, "notification")}`,
      ...sinceMs(Math.min(...messages.map(({ createdAtMs }) => createdAtMs))),
      cause: cut(last?.error ?? `The receiver answered ${last?.status ?? "nothing"}`),
      consequence:
        failed === 0
          ? "The faults are reported late; the messages are tried until their deadline."
          : `${count(failed, "message")} will not be sent again; later ones are tried.`,
      action: "Correct the receiver; `konverge notification list -o json` shows the tries",
    } as const;
  });
}
