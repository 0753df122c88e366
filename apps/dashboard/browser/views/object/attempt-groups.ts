import { handlerSucceeded } from "@konverge/core";
import type { AttemptRecord } from "@konverge/records";
import { conflictsOf } from "./conflicts-of.ts";

/** A line of the list, newest first. */
export type Line =
  | { readonly kind: "attempt"; readonly record: AttemptRecord }
  /** Consecutive attempts without an effect. */
  | { readonly kind: "noops"; readonly records: readonly AttemptRecord[] }
  /** Consecutive attempts with the same error. */
  | { readonly kind: "failures"; readonly records: readonly AttemptRecord[] }
  /** A gap between the attempts above and below. */
  | { readonly kind: "idle"; readonly ms: number };

/** Shorter gaps belong to backoff and watch latency. */
const IDLE_MS = 30_000;
/** A single attempt is as short as its folded line. */
const FOLD_FROM = 2;

/** Folds consecutive attempts without an effect or with the same error, and inserts gaps. */
export function linesOf(attempts: readonly AttemptRecord[]): Line[] {
  const lines: Line[] = [];
  let group: AttemptRecord[] = [];
  let sign: string | undefined;
  const flush = () => {
    const isFolded = sign !== undefined && group.length >= FOLD_FROM;
    if (isFolded) lines.push({ kind: sign === NOOP ? "noops" : "failures", records: group });
    else lines.push(...group.map((record): Line => ({ kind: "attempt", record })));
    group = [];
  };
  for (const [index, record] of attempts.entries()) {
    const later = attempts[index - 1];
    const gapMs =
      later === undefined ? 0 : Date.parse(later.startedAt) - Date.parse(record.finishedAt);
    const next = signOf(record);
    // Failures wait for their backoff, so only other attempts are separated by a gap.
    const isGap = gapMs >= IDLE_MS && (next === NOOP || next !== sign);
    if (isGap || next === undefined || next !== sign) flush();
    if (isGap) lines.push({ kind: "idle", ms: gapMs });
    group.push(record);
    sign = next;
  }
  flush();
  return lines;
}

const NOOP = "";

/** Equal for attempts that can be folded together; undefined for those that cannot. */
function signOf(record: AttemptRecord): string | undefined {
  const { outcome, writes, error } = record;
  if (writes.length > 0) return undefined;
  if (error !== undefined) return `${outcome}\n${error.code}\n${error.message}`;
  return handlerSucceeded(outcome) && conflictsOf(record) === 0 ? NOOP : undefined;
}
