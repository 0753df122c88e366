import { handlerSucceeded } from "@konverge/core";
import type { AttemptRecord } from "@konverge/records";
import { conflictsOf } from "./object-facts.tsx";

/** A line of the list, newest first. */
export type Line =
  | { readonly kind: "attempt"; readonly record: AttemptRecord }
  /** Consecutive attempts without an effect. */
  | { readonly kind: "noops"; readonly records: readonly AttemptRecord[] }
  /** A gap between the attempts above and below. */
  | { readonly kind: "idle"; readonly ms: number };

/** Shorter gaps belong to backoff and watch latency. */
const IDLE_MS = 30_000;
/** A single attempt is as short as its folded line. */
const FOLD_FROM = 2;

/** Folds consecutive attempts without an effect and inserts gaps. */
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

/** Whether the attempt succeeded without writes, conflicts or errors. */
function isNoop(record: AttemptRecord): boolean {
  const { outcome, writes, error } = record;
  return (
    handlerSucceeded(outcome) &&
    writes.length === 0 &&
    conflictsOf(record) === 0 &&
    error === undefined
  );
}
