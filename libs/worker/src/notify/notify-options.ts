import { createHash } from "node:crypto";
import {
  NOTIFICATION_EVENTS,
  toMs,
  type Duration,
  type ErrorIssue,
  type NotificationEvent,
} from "@konverge/core";
import { Webhook } from "./webhook.ts";

/** Selects the faults that a receiver is notified of. */
export interface NotifyRule {
  /** The events that are reported. */
  readonly on: readonly NotificationEvent[];
  /** The result of `webhook`. */
  readonly to: Webhook;
  /** Time after the first fault in which further faults join its message. Default 1m. */
  readonly group?: Duration;
  /** Time for which a message is retried. Default 24h. */
  readonly deadline?: Duration;
}

const KNOWN = ["on", "to", "group", "deadline"];
const DEFAULT_GROUP: Duration = "1m";
const DEFAULT_DEADLINE: Duration = "24h";
const MAX_GROUP_MS = 3_600_000;
const MIN_DEADLINE_MS = 1_000;
const MAX_DEADLINE_MS = 604_800_000;

/** Returns the times of a rule, in ms. */
export function timesOf({ group = DEFAULT_GROUP, deadline = DEFAULT_DEADLINE }: NotifyRule): {
  readonly groupMs: number;
  readonly deadlineMs: number;
} {
  return { groupMs: toMs(group, "group"), deadlineMs: toMs(deadline, "deadline") };
}

/** Returns the name of a receiver with its events. Deployments that notify it of other events keep their own state. */
export function subscriptionOf({ to: { name, format }, on }: NotifyRule): string {
  const text = JSON.stringify([format, ...new Set(on.toSorted())]);
  return `${name}.${createHash("sha256").update(text).digest("hex").slice(0, 12)}`;
}

export function findNotifyIssues(rules: unknown): ErrorIssue[] {
  if (!Array.isArray(rules)) {
    const detail = "notify: must be a list of { on, to: webhook(...) }";
    return [{ pointer: "/notify", detail }];
  }
  const names = rules.map((rule: Partial<NotifyRule> | null) => rule?.to?.name);
  return rules.flatMap((rule: unknown, at): ErrorIssue[] => {
    const pointer = `/notify/${at}`;
    const issue = findRuleIssue(rule);
    if (issue !== undefined) return [{ pointer, detail: `notify.${at}: ${issue}` }];
    if (names.indexOf(names[at]) === at) return [];
    const detail = `notify.${at}: several receivers have the name "${names[at]}"; set name in webhook`;
    return [{ pointer, detail }];
  });
}

function findRuleIssue(rule: unknown): string | undefined {
  if (typeof rule !== "object" || rule === null) return "must be { on, to: webhook(...) }";
  const { on, to, group, deadline } = rule as Partial<NotifyRule>;
  const unknown = Object.keys(rule).find((key) => !KNOWN.includes(key));
  if (unknown !== undefined) return `${unknown} is unknown; valid options: ${KNOWN.join(", ")}`;
  const events = NOTIFICATION_EVENTS.join(", ");
  if (!Array.isArray(on) || on.length === 0) return `on must be a list of ${events}`;
  const wrong = on.find((event: unknown) => !NOTIFICATION_EVENTS.some((known) => known === event));
  if (wrong !== undefined) return `on must be a list of ${events} (got ${JSON.stringify(wrong)})`;
  if (!(to instanceof Webhook)) return "to must be the result of webhook(url, { format })";
  return (
    findTimeIssue("group", group, [0, MAX_GROUP_MS, "0s to 1h"]) ??
    findTimeIssue("deadline", deadline, [MIN_DEADLINE_MS, MAX_DEADLINE_MS, "1s to 7d"])
  );
}

function findTimeIssue(
  field: string,
  value: Duration | undefined,
  [least, most, range]: readonly [number, number, string],
): string | undefined {
  if (value === undefined) return undefined;
  const got = `(got ${JSON.stringify(value)})`;
  try {
    const ms = toMs(value, field);
    return ms >= least && ms <= most ? undefined : `${field} must be ${range} ${got}`;
  } catch {
    return `${field} must be a duration of ${range}, such as "30s" ${got}`;
  }
}
