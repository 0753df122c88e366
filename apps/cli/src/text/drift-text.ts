import type { DriftDetail, DriftList } from "@konverge/contracts";
import { parseKey, shortName } from "@konverge/core";
import { age } from "./age.ts";
import { columns, fields } from "./columns.ts";
import { plain } from "./plain-text.ts";
import { planText, summaryText } from "./plan-text.ts";

/** Formats the groups of equal changes, the most frequent first. */
export function driftRows({ objects, groups }: DriftList): string {
  const rows = columns([
    ["CONTROLLER", "COUNT", "CHANGE", "FIELDS", "MANAGERS", "SINCE", "OBJECTS"],
    ...groups.map(({ controller, count, kind, action, managers, since, examples, ...group }) => [
      controller,
      String(count),
      `${kind} ${action}`,
      group.fields.join(", ") || "-",
      managers.join(", ") || "-",
      age(since),
      examplesText(examples, count),
    ]),
  ]);
  return `${rows}\n\n${objects} ${objects === 1 ? "object has" : "objects have"} drift`;
}

function examplesText(keys: readonly string[], count: number): string {
  const names = keys.map((key) => shortName(parseKey(key))).join(", ");
  return count > keys.length ? `${names}, ...` : names;
}

/** Formats the drift of an object, with its plan. */
export function driftText({ plan, ...drift }: DriftDetail): string {
  const { controller, summary, since, at, changes } = drift;
  const rows: [string, string][] = [
    ["object", `${controller} ${shortName(drift)}`],
    ["changes", summaryText({ summary })],
    ["since", `${since} (${age(since)})`],
    ["planned", `${at} (${age(at)})`],
  ];
  const movers = changes.flatMap((change) =>
    change.moved.map(
      ({ manager, path, at: time }) =>
        `${change.resource} ${shortName(change)}: ${path} belongs to ${manager}${time === undefined ? "" : `, which wrote at ${time} (${age(time)})`}`,
    ),
  );
  const lines = [fields(rows), ...movers].map((line) => plain(line));
  return plan === undefined ? lines.join("\n") : `${lines.join("\n")}\n\n${planText(plan)}`;
}
