import type { ClusterReport, RestoreReport } from "./read-report.ts";
import { span } from "../text/age.ts";
import { fields } from "../text/columns.ts";

type Row = readonly [name: string, value: string];

/** Describes the restore state of each cluster and of the tokens, and the work that would start. */
export function restoreText({ clusters, tokens }: RestoreReport): string {
  const held = tokens.held.length > 0 ? "held" : "accepted";
  const listed = tokens.items.map(({ name, role, createdAt }) => `${name} (${role}, ${createdAt})`);
  return [
    ...clusters.map((cluster) => fields(clusterRows(cluster))),
    fields([["tokens", `${held}; valid: ${listed.join(", ") || "none"}`]]),
  ].join("\n\n");
}

function clusterRows(report: ClusterReport): Row[] {
  return [
    ["cluster", report.cluster],
    ...stateRows(report),
    ...report.controllers.map(({ name, waiting, deadLettered }): Row => [
      "keys",
      `${name}: ${waiting} requested, ${deadLettered} dead-lettered`,
    ]),
    ...report.workflows.flatMap(runRows),
    ...report.schedules
      .filter(({ isDue }) => isDue)
      .map(({ name, nextAt }): Row => ["schedule", `${name}: starts a run for ${nextAt} or later`]),
    ...report.controllers.flatMap(({ name, pauses }) =>
      pauses.map(({ scope, by, reason, since }): Row => [
        "pause",
        `${name} (${scope.kind}) by ${by} at ${since}: ${reason}`,
      ]),
    ),
    ...guardRows(report),
  ];
}

function stateRows({ held, last }: ClusterReport): Row[] {
  if (last === undefined) return [["held", "nothing; no restore was detected"]];
  const [from, to] = [last.lostFromMs, last.lostToMs].map((ms) => new Date(ms).toISOString());
  const lost = `${from} to ${to} (${span(last.lostToMs - last.lostFromMs)})`;
  const { detectedAtMs, by, acceptedBy } = last;
  return [
    ["held", held.join(", ") || `nothing; accepted by ${acceptedBy ?? "an operator"}`],
    ["detected", `${new Date(detectedAtMs).toISOString()} by ${by}`],
    ["lost writes", lost],
  ];
}

function runRows({ name, live, runs }: ClusterReport["workflows"][number]): Row[] {
  return [
    ["runs", `${name}: ${live} live`],
    ...runs.map(({ id, status, steps }): Row => [
      "run",
      `${name}/${id}: ${status}, continues after ${steps} recorded steps`,
    ]),
  ];
}

function guardRows({ guard }: ClusterReport): Row[] {
  if (guard === undefined) return [];
  const { state, isolated, override } = guard;
  return [
    [
      "guard",
      isolated === undefined
        ? state
        : `isolated by ${isolated.by} at ${isolated.at}: ${isolated.reason}`,
    ],
    ...(override === undefined
      ? []
      : [
          [
            "rate",
            `${override.ratePerSecond} calls/s by ${override.by} at ${override.at}: ${override.reason}`,
          ] satisfies Row,
        ]),
  ];
}
