import { plain } from "../text/plain-text.ts";
import type { ChangeGroup, FleetPlan } from "./fleet-plan.ts";

const MOST_INCOMPLETE = 10;

/** Formats the sum of the plans of many objects. */
export function fleetText(fleet: FleetPlan): string {
  const { planned, unchanged, groups, incomplete, unlisted, runs, externals } = fleet;
  const lines = [`${count(planned)} objects planned, ${count(unchanged)} without changes`];
  for (const group of groups) {
    lines.push(groupText(group), `    ${examplesOf(group)}`);
  }
  if (unlisted > 0) lines.push(`${count(unlisted)} further objects changed, not listed`);
  if (runs > 0) lines.push(`${count(runs)} workflow runs would start`);
  if (externals > 0) lines.push(`${count(externals)} calls of ctx.external would be made`);
  if (incomplete.length > 0) lines.push(`${count(incomplete.length)} plans are incomplete`);
  for (const { key, reason } of incomplete.slice(0, MOST_INCOMPLETE)) {
    lines.push(`    ${key}: ${reason}`);
  }
  return lines.map((line) => plain(line)).join("\n");
}

export function fleetDocument({
  planned,
  unchanged,
  changes,
  deletes,
  unlisted,
  runs,
  externals,
  groups,
  incomplete,
}: FleetPlan): object {
  return { planned, unchanged, changes, deletes, unlisted, runs, externals, groups, incomplete };
}

function groupText({ action, kind, fields, count: number }: ChangeGroup): string {
  const where = fields.length === 0 ? "" : `: ${fields.join(", ")}`;
  return `${count(number)} ${kind} ${action}${where}`;
}

function examplesOf({ examples, count: number }: ChangeGroup): string {
  const more = number - examples.length;
  return `${examples.join(", ")}${more > 0 ? ` and ${count(more)} more` : ""}`;
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}
