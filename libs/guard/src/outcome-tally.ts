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
  readonly retryAfterMs: number;
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
  }): void;
  /** Empties the tally. */
  take(generation: number): OutcomeReport;
  /** Restores a report that was not sent. */
  restore(report: OutcomeReport): void;
}

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
  let retryAfterMs = 0;
  const clear = () => {
    ok = failed = trailing = slow = throttled = retryAfterMs = 0;
  };
  return {
    get size() {
      return ok + failed + throttled;
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
      if (end.slow) slow += 1;
      switch (end.class) {
        case "ok":
          ok += 1;
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
      retryAfterMs = Math.max(retryAfterMs, Math.min(end.retryAfterMs, MAX_RETRY_AFTER_MS));
    },
    take(current) {
      const report =
        current === generation
          ? { generation, ok, failed, trailing, slow, throttled, retryAfterMs }
          : {
              generation: current,
              ok: 0,
              failed: 0,
              trailing: 0,
              slow: 0,
              throttled: 0,
              retryAfterMs: 0,
            };
      clear();
      generation = current;
      return report;
    },
    restore(report) {
      if (report.generation !== generation) return;
      // The restored results precede the recorded ones.
      trailing = ok > 0 ? trailing : trailing + report.trailing;
      ok += report.ok;
      failed += report.failed;
      slow += report.slow;
      throttled += report.throttled;
      retryAfterMs = Math.max(retryAfterMs, report.retryAfterMs);
    },
  };
}
