import type { ActFigures } from "./act.ts";

const ROWS: readonly (readonly [label: string, value: (act: ActFigures) => string])[] = [
  ["reconciles", ({ reconciles }) => String(reconciles)],
  ["API calls", ({ apiCalls }) => String(apiCalls)],
  ["writes that changed an object", ({ writes }) => String(writes)],
  ["conflicts", ({ conflicts }) => String(conflicts)],
  ["API calls per write", ({ callsPerWrite }) => callsPerWrite.toFixed(2)],
  ["job retries", ({ jobRetries }) => String(jobRetries)],
  ["ms from the last change to agreement", ({ convergedMs }) => String(convergedMs)],
  ["lost updates", ({ lostUpdates }) => String(lostUpdates)],
  ["converged", ({ converged }) => (converged ? "yes" : "NO")],
];

const OUTAGE_ROWS: typeof ROWS = [
  ["outage in s", ({ outage }) => shown(outage?.seconds)],
  ["  API calls sent in it", ({ outage }) => shown(outage?.callsSent)],
  ["  of them probes", ({ outage }) => shown(outage?.probes)],
  ["  calls put off", ({ outage }) => shown(outage?.deferred)],
  ["  requests taken and lost", ({ outage }) => shown(outage?.lost)],
];
const shown = (value: number | undefined) => (value === undefined ? "-" : String(value));

/** Both acts side by side, as plain text. */
export function renderTable(acts: readonly ActFigures[]): string {
  const hasOutage = acts.some(({ outage }) => outage !== undefined);
  const rows = [
    ["", ...acts.map(({ name }) => name)],
    ...[...ROWS, ...(hasOutage ? OUTAGE_ROWS : [])].map(([label, value]) => [
      label,
      ...acts.map(value),
    ]),
  ];
  const widths =
    rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0
            ? cell.padEnd(widths[column] ?? 0)
            : cell.padStart((widths[column] ?? 0) + 3),
        )
        .join(""),
    )
    .join("\n");
}
