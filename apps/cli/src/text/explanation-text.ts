import type { Explanation, ExplanationCause } from "@konverge/contracts";
import { age } from "./age.ts";
import { columns, fields, type Cell } from "./columns.ts";
import { plain } from "./plain-text.ts";
import { toneCell } from "./tone.ts";

/** Formats an explanation: the summary, then each cause with its evidence. */
export function explanationText(explanation: Explanation): string {
  const { key, verdict, phase = "unknown", summary, causes, unread } = explanation;
  const head = fields([
    ["object", key],
    ["verdict", verdict],
    ["phase", phase],
    ["summary", summary],
  ]);
  const rows = causes.flatMap(causeRows);
  const parts = [head];
  if (rows.length > 0) parts.push("", columns(rows, { wraps: true, hasHead: false }));
  if (unread !== undefined) parts.push("", plain(`conditions and children are unknown: ${unread}`));
  return parts.join("\n");
}

function causeRows({ level, message, since, action, evidence, docs }: ExplanationCause): Cell[][] {
  const start = since === undefined ? "" : ` (since ${age(since)} ago)`;
  const rows: Cell[][] = [[toneCell(level), `${message}${start}`]];
  for (const { kind, name, at, detail } of evidence) {
    const time = at === undefined ? "" : ` at ${at}`;
    rows.push(["", `  ${kind} ${name}${time}${detail === undefined ? "" : `: ${detail}`}`]);
  }
  if (action !== undefined) rows.push(["", `  next step: ${action}`]);
  if (docs !== undefined) rows.push(["", `  docs: ${docs}`]);
  return rows;
}
