import type { ExecutionScope } from "../journal/execution-scope.ts";
import type { RunJournal } from "../journal/run-journal.ts";

export const DEFAULT_STALL_TIMEOUT_MS = 10_000;
/** Delay before a stalled run is rechecked, in ms. Each check occupies a worker for the timeout. */
const RECHECK_MS = 600_000;

/** Checks within the timeout. All must find no progress, so that a blocked event loop counts as one check. */
const CHECKS = 20;
/** Checks without progress after which a run that is to end no longer waits for its function, which has offered all its undos. */
const HURRIED_CHECKS = 2;

export interface StallOptions {
  readonly scope: ExecutionScope;
  readonly journal: Pick<RunJournal, "cancelPending" | "held">;
  readonly timeoutMs: number;
  /** Returns true if the function has called all recorded steps that must be undone. */
  readonly offersAllUndos: () => boolean;
  /** Calls `check` repeatedly until the returned function is called. Default: a timer. */
  readonly every?: (ms: number, check: () => void) => () => void;
}

/**
 * Interrupts the execution when its function has awaited something other than a verb for the timeout. A requested cancellation
 * or a failure then takes effect after a tenth of it, if the function need not offer further undos. Returns a function that ends the watch.
 */
export function watchStalls(options: StallOptions): () => void {
  const { scope, journal, timeoutMs, offersAllUndos, every = repeat } = options;
  const isFailing = journal.held.failing !== undefined;
  let begun = scope.begun;
  let idleChecks = 0;
  const stop = every(timeoutMs / CHECKS, () => {
    if (scope.closed) return stop();
    idleChecks = scope.isIdle && scope.begun === begun ? idleChecks + 1 : 0;
    begun = scope.begun;
    const { cancelPending } = journal;
    if (idleChecks < HURRIED_CHECKS) return;
    const isHurried = (isFailing || cancelPending) && offersAllUndos();
    if (!isHurried && idleChecks < CHECKS) return;
    stop();
    if (isFailing) void scope.interrupt({ kind: "waiting" });
    else if (cancelPending) void scope.interrupt({ kind: "cancelled" });
    else {
      const reason = reasonOf(timeoutMs, scope.latest);
      void scope.interrupt({ kind: "blocked", reason, afterMs: RECHECK_MS });
    }
  });
  return stop;
}

function repeat(ms: number, check: () => void): () => void {
  const timer = setInterval(check, ms);
  return () => clearInterval(timer);
}

function reasonOf(timeoutMs: number, latest: string | undefined): string {
  const where = latest === undefined ? "before its first step" : `after step "${latest}"`;
  return (
    `the function has awaited something that is not a call on w for ${timeoutMs / 1_000} s, ${where}; ` +
    "move it into the body of a step; the run is rechecked every 10 minutes, or at once by a retry"
  );
}
