import { isKonvergeError, type ErrorCode } from "@konverge/core";

/** Codes of TerminalError, of a step or child that failed, and of the cancellation. */
const FAILING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "terminal",
  "step_failed",
  "cancelled",
]);
const MAX_DEPTH = 16;

/**
 * Returns true if an error of the function fails its run: a TerminalError, a failed step or child, the cancellation, an error
 * that one of these caused, or an AggregateError of only these. Any other error is a fault of the code.
 */
export function failsRun(thrown: unknown, depth = 0): boolean {
  if (depth > MAX_DEPTH || typeof thrown !== "object" || thrown === null) return false;
  if (isKonvergeError(thrown) && FAILING.has(thrown.code)) return true;
  if (thrown instanceof AggregateError && thrown.errors.length > 0) {
    return thrown.errors.every((error) => failsRun(error, depth + 1));
  }
  return "cause" in thrown && failsRun(thrown.cause, depth + 1);
}

/** Returns why a run is blocked whose function threw another error, with the fix. */
export function faultReason({ code, message }: { code: string; message: string }): string {
  return (
    `the function threw ${code}: ${message}; deploy corrected code, then the run resumes; ` +
    'to fail the run instead, throw new TerminalError("...")'
  );
}
