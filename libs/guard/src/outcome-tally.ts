import type { ResultClass } from "./result-class.ts";

/** A worker's report: result counts of calls of one generation. */
interface OutcomeReport {
  readonly generation: number;
  readonly ok: number;
  readonly failed: number;
  /** Failures after the last success. */
  readonly trailing: number;
  readonly slow: number;
  readonly throttled: number;
  /** Successes that are too old to end a series of failures. */
  readonly late: number;
  readonly retryAfterMs: number;
  /** The last failure as text; empty without one. */
  readonly failure: string;
}

export interface OutcomeTally {
  /** Recorded calls that were not reported yet. */
  readonly size: number;
  /** Consecutive failures since the last report, or over reports with failures only. */
  readonly trailing: number;
  note(end: {
    readonly generation: number;
    readonly class: ResultClass;
    readonly slow: boolean;
    readonly retryAfterMs: number;
    readonly failure?: string;
    readonly nowMs: number;
  }): void;
  /** True if results other than successes are recorded. */
  readonly isUrgent: boolean;
  /** Empties the tally. */
  take(generation: number, nowMs: number): OutcomeReport;
  /** Restores a report that was not sent. */
  restore(report: OutcomeReport): void;
}

/** Age from which successes no longer end a series of failures, in ms. */
const LATE_MS = 1_000;
/** Upper bound for a server's Retry-After, in ms. */
export const MAX_RETRY_AFTER_MS = 60_000;

/** Counts the results of calls of the newest generation; older ones are ignored. */
export function createOutcomeTally(): OutcomeTally {
  let generation = 0;
  let ok = 0;
  let failed = 0;
  let trailing = 0;
  let slow = 0;
  let throttled = 0;
  let late = 0;
  let retryAfterMs = 0;
  let failure = "";
  let lastOkMs = -Infinity;
  const clear = () => {
    ok = failed = trailing = slow = throttled = late = retryAfterMs = 0;
    failure = "";
  };
  return {
    get size() {
      return ok + failed + throttled + late;
    },
    get isUrgent() {
      return failed + throttled > 0;
    },
    get trailing() {
      return trailing;
    },
    note(end) {
      if (end.generation < generation) return;
      if (end.generation > generation) {
        clear();
        generation = end.generation;
      }
      // A share of the calls that count; a call that its caller aborted late is no evidence.
      if (end.slow && (end.class === "ok" || end.class === "failed")) slow += 1;
      switch (end.class) {
        case "ok":
          ok += 1;
          lastOkMs = end.nowMs;
          trailing = 0;
          return;
        case "failed":
          failed += 1;
          trailing += 1;
          break;
        case "throttled":
          throttled += 1;
          break;
        case "unauthorized":
        case "neutral":
          return;
      }
      failure = end.failure ?? failure;
      retryAfterMs = Math.max(retryAfterMs, Math.min(end.retryAfterMs, MAX_RETRY_AFTER_MS));
    },
    take(current, nowMs) {
      if (current !== generation) clear();
      if (nowMs - lastOkMs >= LATE_MS) [ok, late] = [0, late + ok];
      const counts = { ok, failed, trailing, slow, throttled, late, retryAfterMs, failure };
      clear();
      generation = current;
      return { generation, ...counts };
    },
    restore(report) {
      if (report.generation !== generation) return;
      // The restored results precede the recorded ones.
      trailing = ok > 0 ? trailing : trailing + report.trailing;
      ok += report.ok;
      failed += report.failed;
      slow += report.slow;
      throttled += report.throttled;
      late += report.late;
      retryAfterMs = Math.max(retryAfterMs, report.retryAfterMs);
      if (failure === "") failure = report.failure;
    },
  };
}
