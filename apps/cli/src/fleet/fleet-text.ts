import { plain } from "../text/plain-text.ts";
import type { ChangeGroup, FleetPlan, NoteGroup } from "./fleet-plan.ts";

const MOST_INCOMPLETE = 10;

/** Formats the sum of the plans of many objects. */
export function fleetText(fleet: FleetPlan): string {
  const { groups, incomplete } = fleet;
  const lines = [headline(fleet)];
  for (const group of groups) {
    lines.push(groupText(group), `    ${examplesOf(group)}`);
  }
  lines.push(...(fleet.isComparison ? differenceLines(fleet) : effectLines(fleet)));
  if (incomplete.length > 0) lines.push(`${count(incomplete.length)} plans are incomplete`);
  for (const { key, reason } of incomplete.slice(0, MOST_INCOMPLETE)) {
    lines.push(`    ${key}: ${reason}`);
  }
  return lines.map((line) => plain(line)).join("\n");
}

export function fleetDocument(fleet: FleetPlan): object {
  const { planned, unchanged, changes, deletes, unlisted, runs, externals } = fleet;
  const { groups, incomplete, notes, removed, isComparison } = fleet;
  return {
    planned,
    unchanged,
    changes,
    deletes,
    unlisted,
    runs,
    externals,
    groups,
    incomplete,
    ...(isComparison ? { notes, removed } : {}),
  };
}

function headline({ planned, unchanged, isComparison }: FleetPlan): string {
  return isComparison
    ? `${count(planned)} objects planned with new and running code, ${count(unchanged)} without differences`
    : `${count(planned)} objects planned, ${count(unchanged)} without changes`;
}

function effectLines({ unlisted, runs, externals }: FleetPlan): string[] {
  return [
    ...(unlisted > 0 ? [`${count(unlisted)} further objects changed, not listed`] : []),
    ...(runs > 0 ? [`${count(runs)} workflow runs would start`] : []),
    ...(externals > 0 ? [`${count(externals)} calls of ctx.external would be made`] : []),
  ];
}

function differenceLines({ notes, removed }: FleetPlan): string[] {
  return [
    ...notes.flatMap((group) => [
      `${count(group.count)} times: ${group.note}`,
      `    ${examplesOf(group)}`,
    ]),
    ...removed.map(
      ({ controller, objects }) =>
        `controller ${controller} is not in the new code: ${count(objects)} objects would no longer be reconciled`,
    ),
  ];
}

function groupText({ action, kind, fields, count: number, ...compared }: ChangeGroup): string {
  const where = fields.length === 0 ? "" : `: ${fields.join(", ")}`;
  return `${count(number)} ${kind} ${verbOf(action, compared)}${where}`;
}

function verbOf(
  action: ChangeGroup["action"],
  { difference, instead }: Pick<ChangeGroup, "difference" | "instead">,
): string {
  if (instead !== undefined) return `${action}, not ${instead}`;
  if (difference === "dropped") return `no longer ${action}`;
  return difference === "altered" ? `${action} in another way` : action;
}

function examplesOf({ examples, count: number }: ChangeGroup | NoteGroup): string {
  const more = number - examples.length;
  return `${examples.join(", ")}${more > 0 ? ` and ${count(more)} more` : ""}`;
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}
