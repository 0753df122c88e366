import { nextDelay, isFinal, type BackoffPolicy, type Outcome } from "@konverge/core";
import type { QueueBackoffs } from "../contract/work-queue.ts";

/** Consecutive conflicts with the conflict backoff; after that, the failure backoff applies. */
const CONFLICTS_BEFORE_FAILURE_BACKOFF = 50;

/** The effects of an outcome on the key and its job. */
export interface EndPlan {
  /** Change of the counters: reset all, increment one, do not count the attempt, or none. */
  readonly counting: "reset" | "failure" | "conflict" | "uncount" | "keep";
  /** True if the covered requests are finished. */
  readonly final: boolean;
  /** How the key waits. New events end a backoff, but not a deferral. */
  readonly hold: "" | "backoff" | "deferred";
  readonly delayMs: number;
  /** Arms the key's timer, in ms from now. */
  readonly timerMs?: number;
  readonly dead: boolean;
  /** The next state of the job. */
  readonly job: "complete" | "retry" | "delay" | "putBack";
}

export interface EndPlanOptions {
  readonly backoffs: QueueBackoffs;
  readonly maxFailures: number;
  readonly random: () => number;
}

/** Consecutive counts before this attempt. */
export interface Counters {
  readonly failures: number;
  readonly conflicts: number;
}

/** Maps an outcome to queue actions, with a delay from the key's own counters (P7). */
export function planEnd(outcome: Outcome, counters: Counters, options: EndPlanOptions): EndPlan {
  const { backoffs, random } = options;
  const failing = (policy: BackoffPolicy, step: number, atLeastMs = 0) =>
    Math.max(atLeastMs, delayOf(policy, step, random));
  switch (outcome.kind) {
    case "done":
    case "awaitChange":
    case "awaitApproval":
    case "gone":
      return finish();
    case "requeueAfter":
      return { ...finish(), timerMs: outcome.afterMs };
    case "conflict": {
      const step = counters.conflicts - CONFLICTS_BEFORE_FAILURE_BACKOFF;
      const delayMs =
        step < 0 ? failing(backoffs.conflict, counters.conflicts) : failing(backoffs.failure, step);
      return retry("conflict", delayMs);
    }
    case "retry":
      return failed(failing(backoffs.failure, counters.failures, outcome.retryAfterMs));
    case "rejected":
      return failed(failing(backoffs.rejected, counters.failures));
    case "terminal":
      return { ...finish(), counting: "failure", dead: true };
    case "deferred":
      return {
        ...finish(),
        counting: "uncount",
        final: false,
        hold: outcome.endsOnRequest === true ? "backoff" : "deferred",
        delayMs: outcome.afterMs,
        job: "delay",
      };
    case "cancelled":
      switch (outcome.cause) {
        case "person":
          // Only if all covered requests were cancelled.
          return { ...finish(), counting: "keep", final: true };
        case "shutdown":
        case "leaseLost":
        case "handedBack":
          return { ...finish(), counting: "uncount", final: false, job: "putBack" };
      }
  }

  function finish(): EndPlan {
    const final = isFinal(outcome.kind);
    return { counting: "reset", final, hold: "", delayMs: 0, dead: false, job: "complete" };
  }
  function failed(delayMs: number): EndPlan {
    if (counters.failures + 1 < options.maxFailures) return retry("failure", delayMs);
    return { ...finish(), counting: "failure", final: true, dead: true };
  }
  function retry(counting: EndPlan["counting"], delayMs: number): EndPlan {
    return { ...finish(), counting, final: false, hold: "backoff", delayMs, job: "retry" };
  }
}

/** Returns the delay of a step. After the last step of a policy, its longest delay repeats: the queue retries forever. */
export function delayOf(policy: BackoffPolicy, step: number, random: () => number): number {
  const next = nextDelay(policy, step, random);
  if (next.kind === "wait") return next.afterMs;
  const last = nextDelay({ ...policy, steps: Infinity }, Math.max(0, policy.steps - 1), random);
  return last.kind === "wait" ? last.afterMs : policy.capMs;
}
