import { terminalWidth, textTable } from "../stage/text-table.ts";
import type { TimelineRow } from "./run-timeline.ts";

/** An expected final state, and the state that was found. */
export interface Check {
  readonly ok: boolean;
  readonly what: string;
  readonly found: string;
}

export function renderTimeline(rows: readonly TimelineRow[]): string {
  return textTable(
    [
      ["STEP", "KIND", "BY", "TRIES", "DURATION"],
      ...rows.map(({ step, kind, workers, by, tries, tookMs }) => [
        step,
        kind,
        by ?? workers.join(", then "),
        tries === undefined ? "-" : triesText(tries, workers),
        tookText(tookMs),
      ]),
    ],
    { width: terminalWidth() },
  );
}

/** A worker that dies in a body does not record that try. */
function triesText(tries: number, workers: readonly string[]): string {
  const untold = workers.length - 1;
  return untold > 0 ? `${tries} + ${untold} cut off` : String(tries);
}

function tookText(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

export function renderChecks(checks: readonly Check[]): string {
  const rows = checks.map(({ ok, what, found }) => [ok ? "ok" : "FAIL", what, found]);
  return textTable(rows, { width: terminalWidth() });
}
