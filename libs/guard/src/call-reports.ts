import { defined, type AdmitRequest, type CallResult } from "@konverge/core";
import { createOutcomeTally, MAX_RETRY_AFTER_MS } from "./outcome-tally.ts";
import { failureText, type ResultClass } from "./result-class.ts";

/** Consecutive failures that are reported immediately. */
const URGENT_FAILURES = 3;

/** The part of a token request that reports results. */
type ReportedResults = Pick<
  AdmitRequest,
  | "generation"
  | "ok"
  | "failed"
  | "trailing"
  | "slow"
  | "throttled"
  | "late"
  | "retryAfterUs"
  | "failure"
  | "ticket"
  | "verdict"
>;

/** The result of a probe that the next token request reports. */
type Verdict = Pick<AdmitRequest, "ticket" | "verdict" | "failure"> & {
  readonly retryAfterMs: number;
};

interface EndedCall {
  readonly result: CallResult;
  readonly kind: ResultClass;
  readonly generation: number;
  readonly slow: boolean;
  readonly nowMs: number;
  /** Present if the call was the probe. */
  readonly ticket?: string;
}

/** Results of calls that the next token request reports. */
export interface CallReports {
  readonly isEmpty: boolean;
  /** True if ordinary results are recorded. */
  readonly hasResults: boolean;
  /** True if results other than successes are recorded. */
  readonly hasTrouble: boolean;
  /** True after several failures in a row. */
  readonly isFailing: boolean;
  /** True if they are reported without delay: several failures in a row, or the result of a probe. */
  readonly isUrgent: boolean;
  note(call: EndedCall): void;
  /** Returns a ticket that no call used, so that another worker can probe. */
  returnTicket(ticket: string): void;
  /** Empties the reports. */
  take(generation: number, nowMs: number): ReportedResults;
  /** Restores results that were not sent, except those of a probe. */
  restore(request: ReportedResults, generation: number): void;
}

/** @param probesItself true if this process aborts its own probes, which it does only at their deadline */
export function createCallReports(probesItself: boolean): CallReports {
  const tally = createOutcomeTally();
  let verdict: Verdict | undefined;
  return {
    get isEmpty() {
      return tally.size === 0 && verdict === undefined;
    },
    get hasResults() {
      return tally.size > 0;
    },
    get hasTrouble() {
      return tally.isUrgent;
    },
    get isFailing() {
      return tally.trailing >= URGENT_FAILURES;
    },
    get isUrgent() {
      return verdict !== undefined || tally.trailing >= URGENT_FAILURES;
    },
    note({ result, kind, ticket, ...call }) {
      const retryAfterMs = result.kind === "response" ? (result.retryAfterMs ?? 0) : 0;
      const failure = failureText(result);
      if (ticket === undefined) {
        tally.note({ ...call, class: kind, retryAfterMs, ...defined({ failure }) });
        return;
      }
      const isLate = result.kind === "aborted" && probesItself;
      verdict = {
        ticket,
        verdict: isLate ? "failed" : kind === "ok" || kind === "failed" ? kind : "neutral",
        retryAfterMs: Math.min(retryAfterMs, MAX_RETRY_AFTER_MS),
        failure: failure ?? (isLate ? "timeout" : ""),
      };
    },
    returnTicket(ticket) {
      verdict = { ticket, verdict: "neutral", retryAfterMs: 0 };
    },
    take(generation, nowMs) {
      const { retryAfterMs, ...report } = tally.take(generation, nowMs);
      const sent = verdict;
      verdict = undefined;
      return {
        ...report,
        retryAfterUs: Math.max(retryAfterMs, sent?.retryAfterMs ?? 0) * 1_000,
        failure: sent?.failure || report.failure,
        ticket: sent?.ticket ?? "",
        verdict: sent?.verdict ?? "",
      };
    },
    restore(
      { ok, failed, trailing, slow, throttled, late, retryAfterUs, failure = "" },
      generation,
    ) {
      const counts = { ok, failed, trailing, slow, throttled, late };
      tally.restore({ generation, ...counts, retryAfterMs: retryAfterUs / 1_000, failure });
    },
  };
}
