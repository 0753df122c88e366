import { createHash } from "node:crypto";
import { isoTime, type NotificationEvent } from "@konverge/core";
import type { FaultGroup, NotificationRecord } from "@konverge/queue";

/** The installation and the cluster that a message is about. */
export interface NotificationPlace {
  readonly installation: string;
  readonly cluster: string;
}

interface EventText {
  readonly one: string;
  readonly many: string;
  readonly alert: string;
}

const EVENTS: Readonly<Record<NotificationEvent, EventText>> = {
  dead_letter: {
    one: "dead-lettered key",
    many: "dead-lettered keys",
    alert: "KonvergeDeadLetter",
  },
  run_blocked: { one: "blocked run", many: "blocked runs", alert: "KonvergeRunBlocked" },
  approval: {
    one: "awaited approval",
    many: "awaited approvals",
    alert: "KonvergeApprovalAwaited",
  },
  contention: {
    one: "object with contention",
    many: "objects with contention",
    alert: "KonvergeContention",
  },
  breaker_open: {
    one: "unavailable API server",
    many: "unavailable API servers",
    alert: "KonvergeBreakerOpen",
  },
};

/** A newer version may have stored an event that this one does not know. */
function textOf(event: string): EventText {
  if (Object.hasOwn(EVENTS, event)) return EVENTS[event as NotificationEvent];
  const name = event.replaceAll(/(?:^|[^a-z0-9]+)([a-z0-9])/gi, (_, first: string) =>
    first.toUpperCase(),
  );
  return { one: event, many: event, alert: `Konverge${name}` };
}

/**
 * An alert without an end is closed by Alertmanager after some minutes if it is not sent again. Each alert is sent once, so it gets
 * an end that a message about the resolved fault replaces.
 */
const ALERT_LASTS_MS = 30 * 86_400_000;
const MAX_SLACK_TEXT = 2_900;
const MAX_LABEL = 256;
const MAX_SUMMARY = 500;

/** Returns the body of a message: JSON without secrets. */
export function formatNotification(record: NotificationRecord, place: NotificationPlace): string {
  switch (record.format) {
    case "slack":
      return JSON.stringify(slackMessage(record, place));
    case "json":
      return JSON.stringify(jsonMessage(record, place));
    case "alertmanager":
      return JSON.stringify(record.groups.map((group) => alertOf(group, record, place)));
  }
}

/** Returns one line, such as `3 dead-lettered keys, 1 blocked run on prod`. */
function titleOf({ groups }: NotificationRecord, { cluster }: NotificationPlace): string {
  const byEvent = Map.groupBy(groups, ({ event }) => event);
  const text = (count: (group: FaultGroup) => number) =>
    [...byEvent].flatMap(([event, each]) => {
      const total = each.reduce((sum, group) => sum + count(group), 0);
      return total === 0 ? [] : [counted(total, event)];
    });
  const began = text(({ firing }) => firing).join(", ");
  const ended = text(({ resolved }) => resolved).join(", ");
  const parts = [began, ...(ended === "" ? [] : [`resolved: ${ended}`])];
  return `${parts.filter((part) => part !== "").join("; ")} on ${cluster}`;
}

function counted(count: number, event: NotificationEvent): string {
  return `${count} ${textOf(event)[count === 1 ? "one" : "many"]}`;
}

/** The form of incoming webhooks: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks */
function slackMessage(record: NotificationRecord, place: NotificationPlace): unknown {
  const title = titleOf(record, place);
  const groups = record.groups
    .filter(({ firing }) => firing > 0)
    .map(({ event, group, firing }) => `• ${escaped(group)}: ${counted(firing, event)}`);
  const examples = record.examples.map(({ summary }) => `• ${escaped(summary)}`);
  const total = record.groups.reduce((sum, { firing }) => sum + firing, 0);
  const more = total - record.examples.length;
  const section = (text: string) => ({
    type: "section",
    text: { type: "mrkdwn", text: text.slice(0, MAX_SLACK_TEXT) },
  });
  return {
    text: escaped(title),
    blocks: [
      section(`*${escaped(title)}*`),
      section(groups.join("\n")),
      section([...examples, ...(more > 0 ? [`and ${more} more`] : [])].join("\n")),
      {
        type: "context",
        elements: [
          {
            type: "mrkdwn",
            text: `Konverge ${escaped(place.installation)}, notification ${record.id}`,
          },
        ],
      },
    ],
  };
}

/** Escapes the characters that Slack interprets. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function jsonMessage(record: NotificationRecord, place: NotificationPlace): unknown {
  return {
    version: 1,
    id: record.id,
    ...place,
    text: titleOf(record, place),
    createdAt: isoTime(record.createdAtMs),
    groups: record.groups.map(({ sinceMs, ...group }) => ({ ...group, since: isoTime(sinceMs) })),
    examples: record.examples.map(({ sinceMs, ...fault }) => ({
      ...fault,
      since: isoTime(sinceMs),
    })),
  };
}

/** The form of POST /api/v2/alerts. The labels identify the alert, so they have no counts. */
function alertOf(
  { event, group, firing, open, sinceMs }: FaultGroup,
  { id, createdAtMs, examples }: NotificationRecord,
  { installation, cluster }: NotificationPlace,
): unknown {
  const isOpen = open > 0;
  const labels = {
    installation: labelOf(installation),
    cluster: labelOf(cluster),
    event: labelOf(event),
    group: labelOf(group),
  };
  const own = examples.filter((fault) => fault.event === event && fault.group === group);
  return {
    labels: { alertname: textOf(event).alert, ...labels },
    annotations: {
      summary: isOpen
        ? `${group}: ${counted(open, event)} on ${cluster}`
        : `${group}: no ${textOf(event).many} on ${cluster}`,
      ...(own.length === 0
        ? {}
        : { examples: own.map(({ summary }) => summary.slice(0, MAX_SUMMARY)).join("\n") }),
      new: String(firing),
      notification: id,
    },
    startsAt: isoTime(Math.min(sinceMs, createdAtMs)),
    endsAt: isoTime(isOpen ? createdAtMs + ALERT_LASTS_MS : createdAtMs),
  };
}

/** Cuts a long value. Its hash keeps the values of different alerts different. */
function labelOf(text: string): string {
  if (text.length <= MAX_LABEL) return text;
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 12);
  return `${text.slice(0, MAX_LABEL - hash.length - 1)}-${hash}`;
}
