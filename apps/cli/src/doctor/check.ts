import { ensureError, ERRORS, isKonvergeError } from "@konverge/core";
import { ProblemError } from "@konverge/client";
import { exitCodeOf } from "../process/exit-codes.ts";
import { oneLine } from "../process/explain-failure.ts";

/** One thing that was looked at. */
export interface Check {
  readonly check: string;
  /** `warn` works but may surprise; `skip` could not be looked at. */
  readonly level: "ok" | "warn" | "fail" | "skip";
  /** What was found; with the cure where something is wrong. */
  readonly detail: string;
  /** Of a failed one. */
  readonly exitCode?: number;
}

/** What stands in the way of looking. */
export function failedCheck(
  check: string,
  thrown: unknown,
  level: "warn" | "fail" = "fail",
): Check {
  const error = ensureError(thrown);
  const detail = oneLine(error.message);
  if (level === "warn") return { check, level, detail };
  const exitCode = isKonvergeError(error)
    ? ERRORS[error.code].exitCode
    : error instanceof ProblemError
      ? exitCodeOf(error)
      : 6;
  return { check, level, detail, exitCode };
}
