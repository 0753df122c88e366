import type { Overview, OverviewProblem } from "@konverge/contracts";
import { age } from "./age.ts";
import { columns, type Cell } from "./columns.ts";
import { toneCell } from "./tone.ts";

/** Formats the summary and the problems of a cluster. Long lines are wrapped and not cut, because they end with the next step. */
export function statusText({ summary, problems }: Overview): string {
  const rows = problems.flatMap(problemRows);
  if (rows.length === 0) return summary;
  return [summary, "", columns(rows, { wraps: true, hasHead: false })].join("\n");
}

export function problemRows(problem: OverviewProblem): Cell[][] {
  const { level, message, since, cause, consequence, action, symptoms = [] } = problem;
  const facts = [
    ["cause", cause],
    ["effect", consequence],
    ["next step", action],
    ...symptoms.map((symptom) => ["symptom", symptom.message] as const),
  ] as const;
  const start = since === undefined ? "" : ` (began ${age(since)} ago)`;
  return [
    [toneCell(level), `${message}${start}`],
    ...(level === "info" ? [] : facts).flatMap(([title, text]): Cell[][] =>
      text === undefined ? [] : [["", `  ${title}: ${text}`]],
    ),
  ];
}

/** Returns the parts of an overview whose changes `--watch` prints. */
export function statusKey({ summary, problems }: Overview): string {
  return JSON.stringify([
    summary,
    problems.map(({ code, level, since, cause, controller, key }) => [
      code,
      level,
      since,
      cause,
      controller,
      key,
    ]),
  ]);
}
