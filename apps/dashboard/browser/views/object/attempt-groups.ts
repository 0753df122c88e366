import type { AttemptRecord } from "@konverge/records";
import { conflictsOf } from "./object-facts.tsx";

/** A line of the timeline, newest first. */
export type Line =
  | { readonly kind: "attempt"; readonly record: AttemptRecord }
  /** Attempts in a row that found nothing to do. */
  | { readonly kind: "noops"; readonly records: readonly AttemptRecord[] }
  /** Nothing ran between the attempt above and the one below. */
  | { readonly kind: "idle"; readonly ms: number };

/** Longer than what backoff and watches make of one story. */
const IDLE_MS = 30_000;
/** One that did nothing is as short as a line that says so. */
const FOLD_FROM = 2;

/** Folds what says nothing, and tells the gaps instead of drawing them. */
export function linesOf(attempts: readonly AttemptRecord[]): Line[] {
  const lines: Line[] = [];
  let quiet: AttemptRecord[] = [];
  const flush = () => {
    if (quiet.length >= FOLD_FROM) lines.push({ kind: "noops", records: quiet });
    else lines.push(...quiet.map((record): Line => ({ kind: "attempt", record })));
    quiet = [];
  };
  for (const [index, record] of attempts.entries()) {
    const later = attempts[index - 1];
    const gapMs =
      later === undefined ? 0 : Date.parse(later.startedAt) - Date.parse(record.finishedAt);
    if (gapMs >= IDLE_MS) {
      flush();
      lines.push({ kind: "idle", ms: gapMs });
    }
    if (isNoop(record)) quiet.push(record);
    else {
      flush();
      lines.push({ kind: "attempt", record });
    }
  }
  flush();
  return lines;
}

/** Went well, and left everything as it was. */
function isNoop(record: AttemptRecord): boolean {
  const { outcome, writes, error } = record;
  const well = outcome === "done" || outcome === "awaitChange" || outcome === "requeueAfter";
  return well && writes.length === 0 && conflictsOf(record) === 0 && error === undefined;
}
