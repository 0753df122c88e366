import { ensureError, ERRORS, isKonvergeError } from "@konverge/core";
import { ProblemError } from "@konverge/client";
import { exitCodeOf } from "../process/exit-codes.ts";
import { oneLine } from "../process/explain-failure.ts";

/** The result of one check. */
export interface Check {
  readonly check: string;
  /** `warn` works with a limitation; `skip` was not checked. */
  readonly level: "ok" | "warn" | "fail" | "skip";
  /** The finding, with a suggested fix for a problem. */
  readonly detail: string;
  /** Exit code of a failed check. */
  readonly exitCode?: number;
}

/** Returns the result of a check that threw. */
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
