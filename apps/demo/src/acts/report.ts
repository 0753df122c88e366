import type { ActFigures } from "./act.ts";
import { textTable } from "../stage/text-table.ts";

type Row = readonly [label: string, value: (act: ActFigures) => string];

/** Rows of the table; the main criteria come first. */
const ROWS: readonly Row[] = [
  ["API calls per write", ({ callsPerWrite }) => callsPerWrite.toFixed(2)],
  ["conflicts", ({ conflicts }) => String(conflicts)],
  ["time to agreement", ({ converged, convergedMs }) => (converged ? seconds(convergedMs) : "-")],
  ["lost updates", ({ lostUpdates }) => String(lostUpdates)],
  ["dropped updates", ({ gaveUp }) => String(gaveUp)],
  ["API calls", ({ apiCalls }) => String(apiCalls)],
  ["successful writes", ({ writes }) => String(writes)],
  ["reconciles", ({ reconciles }) => String(reconciles)],
  ["job retries", ({ jobRetries }) => String(jobRetries)],
];

const OUTAGE_ROWS: readonly Row[] = [
  ["outage", ({ outage }) => (outage === undefined ? "-" : `${outage.seconds} s`)],
  ["  API calls sent during it", ({ outage }) => shown(outage?.callsSent)],
  ["  half-open periods (probes)", ({ outage }) => shown(outage?.probes)],
  ["  deferred calls", ({ outage }) => shown(outage?.deferred)],
  ["  lost requests", ({ outage }) => shown(outage?.lost)],
];

/** Renders the acts side by side. */
export function renderTable(acts: readonly ActFigures[]): string {
  const hasOutage = acts.some(({ outage }) => outage !== undefined);
  const rows = [...ROWS, ...(hasOutage ? OUTAGE_ROWS : [])];
  return textTable(
    [
      ["", ...acts.map(({ name }) => name)],
      ...rows.map(([label, value]) => [label, ...acts.map(value)]),
    ],
    { alignRight: acts.map((_, index) => index + 1) },
  );
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
const shown = (value: number | undefined) => (value === undefined ? "-" : String(value));
