import type { NotificationRecord } from "@konverge/queue";
import { expect, test } from "vitest";
import { formatNotification } from "./format-notification.ts";

const sinceMs = Date.parse("2026-01-02T03:04:05.000Z");
const record: NotificationRecord = {
  id: "n1",
  receiver: "chat",
  subscription: "chat.1",
  format: "slack",
  state: "waiting",
  createdAtMs: Date.parse("2026-01-02T03:05:00.000Z"),
  deadlineMs: 0,
  groups: [
    { event: "dead_letter", group: "web", firing: 7, resolved: 0, open: 7, sinceMs },
    { event: "run_blocked", group: "order", firing: 0, resolved: 1, open: 0, sinceMs },
  ],
  examples: [
    {
      event: "dead_letter",
      subject: "web/apps/deployments/default/demo/a",
      group: "web",
      summary: "web: demo/a is dead-lettered (<b> & co)",
      sinceMs,
    },
  ],
  tries: 0,
  lastTries: [],
};
const place = { installation: "konverge", cluster: "prod" };
const formatted = (format: NotificationRecord["format"]) =>
  JSON.parse(formatNotification({ ...record, format }, place)) as unknown;

test("makes the body of an incoming webhook of Slack, with its characters escaped", () => {
  const section = (text: string) => ({ type: "section", text: { type: "mrkdwn", text } });
  const title = "7 dead-lettered keys; resolved: 1 blocked run on prod";
  expect(formatted("slack")).toEqual({
    text: title,
    blocks: [
      section(`*${title}*`),
      section("• web: 7 dead-lettered keys"),
      section("• web: demo/a is dead-lettered (&lt;b&gt; &amp; co)\nand 6 more"),
      {
        type: "context",
        elements: [{ type: "mrkdwn", text: "Konverge konverge, notification n1" }],
      },
    ],
  });
});

test("makes the alerts of the API v2 of Alertmanager, with an end for resolved faults", () => {
  const startsAt = "2026-01-02T03:04:05.000Z";
  const labels = { installation: "konverge", cluster: "prod" };
  expect(formatted("alertmanager")).toEqual([
    {
      labels: { alertname: "KonvergeDeadLetter", ...labels, event: "dead_letter", group: "web" },
      annotations: {
        summary: "web: 7 dead-lettered keys on prod",
        examples: "web: demo/a is dead-lettered (<b> & co)",
        new: "7",
        notification: "n1",
      },
      startsAt,
      endsAt: "2026-02-01T03:05:00.000Z",
    },
    {
      labels: { alertname: "KonvergeRunBlocked", ...labels, event: "run_blocked", group: "order" },
      annotations: { summary: "order: no blocked runs on prod", new: "0", notification: "n1" },
      startsAt,
      endsAt: "2026-01-02T03:05:00.000Z",
    },
  ]);
});

test("makes JSON with the counts, the examples and the ID", () => {
  expect(formatted("json")).toMatchObject({
    version: 1,
    id: "n1",
    ...place,
    groups: [
      { event: "dead_letter", group: "web", firing: 7, resolved: 0, open: 7 },
      { event: "run_blocked", group: "order", firing: 0, resolved: 1, open: 0 },
    ],
    examples: [{ subject: "web/apps/deployments/default/demo/a" }],
  });
});

test("formats an event that a newer version has stored", () => {
  const groups = [{ ...record.groups[0], event: "disk_full_soon", group: "web" }];
  // Stored records are not checked when they are read.
  const newer = { ...record, groups, examples: [] } as unknown as NotificationRecord;
  const [alert] = JSON.parse(
    formatNotification({ ...newer, format: "alertmanager" }, place),
  ) as unknown[];
  expect(alert).toMatchObject({ labels: { alertname: "KonvergeDiskFullSoon" } });
  for (const format of ["slack", "json"] as const) {
    expect(formatNotification({ ...newer, format }, place)).toContain("7 disk_full_soon on prod");
  }
});

test("cuts long labels of alerts, and keeps them different", () => {
  const [group] = record.groups;
  if (group === undefined) throw new Error("no group");
  const groups = ["a", "b"].map((end) => ({ ...group, group: `${"x".repeat(300)}${end}` }));
  const alerts = JSON.parse(
    formatNotification({ ...record, groups, format: "alertmanager" }, place),
  ) as { readonly labels: { readonly group: string } }[];
  const labels = alerts.map(({ labels: each }) => each.group);
  expect(new Set(labels).size).toBe(2);
  for (const label of labels) expect(label).toHaveLength(256);
});
