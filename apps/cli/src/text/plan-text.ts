import { shortName } from "@konverge/core";
import type { PlanRecord } from "@konverge/records";
import { age, span } from "./age.ts";
import { fields } from "./columns.ts";
import { changesOf } from "./patch-changes.ts";
import { plain } from "./plain-text.ts";

type Change = PlanRecord["changes"][number];

const SIGNS: Readonly<Record<Change["action"], string>> = {
  created: "+",
  changed: "~",
  deleted: "-",
  replaced: "-/+",
  unchanged: "=",
};

/** Formats a plan: its result, then each object with the changed fields. */
export function planText(plan: PlanRecord): string {
  const { gaps, events, externals, runs, changes, error } = plan;
  const rows: [string, string][] = [
    ["plan", plan.id],
    ["key", plan.key],
    ["outcome", outcomeText(plan)],
    ["changes", summaryText(plan)],
    ["hash", plan.hash],
    ["planned", `${plan.startedAt} (${age(plan.startedAt)}), took ${span(plan.durationMs)}`],
    ["API calls", `${plan.calls.count}, no change stored`],
  ];
  if (error !== undefined) rows.push(["error", `${error.code}: ${error.message}`]);
  const lines = [fields(rows)];
  for (const change of changes) lines.push(changeText(change));
  if (plan.moreChanges !== undefined) lines.push(`and ${plan.moreChanges} more objects`);
  for (const { type, reason, message, kind, name } of events) {
    lines.push(plain(`event: ${type} ${reason} on ${kind} ${name}: ${message}`));
  }
  for (const name of externals) lines.push(plain(`external call skipped: ${name}`));
  for (const { workflow, id } of runs) {
    lines.push(plain(`run: ${id === undefined ? workflow : `${workflow}/${id}`}`));
  }
  for (const { about, reason } of gaps) lines.push(plain(`unknown: ${about}: ${reason}`));
  if (plan.moreNotes !== undefined) lines.push(`and ${plan.moreNotes} more notes`);
  return lines.join("\n");
}

function outcomeText({ outcome, afterMs, cause, complete }: PlanRecord): string {
  const after = afterMs === undefined ? "" : ` after ${span(afterMs)}`;
  const reason = cause === undefined ? "" : `: ${cause}`;
  return `${outcome}${after}${reason}${complete ? "" : " (incomplete: more changes may follow)"}`;
}

export function summaryText({ summary }: Pick<PlanRecord, "summary">): string {
  const parts = Object.entries(summary)
    .filter(([, count]) => count > 0)
    .map(([action, count]) => `${count} ${action}`);
  return parts.length === 0 ? "none" : parts.join(", ");
}

function changeText(change: Change): string {
  const { action, resource, namespace, name, cluster, terminating, fieldsTakenOver = [] } = change;
  const path = shortName({ namespace, name });
  const where = cluster === undefined ? "" : ` in cluster ${cluster}`;
  const waits = terminating === true ? " (waits for its finalizers)" : "";
  const lines = [`${SIGNS[action]} ${resource} ${path}${where} ${action}${waits}`];
  for (const { path: field, value } of changesOf(change.patch)) {
    lines.push(`    ${field}: ${value === null ? "(removed)" : JSON.stringify(value)}`);
  }
  for (const { manager, path: field } of fieldsTakenOver) {
    lines.push(`    takes over ${field} from ${manager}`);
  }
  return lines.map((line) => plain(line)).join("\n");
}
