import { ERRORS, type ErrorCode } from "@konverge/core";

/** The exit codes of all commands. Those of errors come from the table of error codes. */
export const EXIT_CODES: readonly (readonly [code: number, meaning: string])[] = [
  [0, "success"],
  [1, "operation failed"],
  [2, "invalid input or configuration"],
  [3, "not found"],
  [4, "conflict or failed precondition"],
  [5, "wait timed out; the work continues"],
  [6, "Redis or server unavailable; retry later"],
  [7, "token missing, invalid or without permission"],
  [130, "interrupted by SIGINT"],
  [143, "terminated by SIGTERM"],
];

export function exitCodesHelp(): string {
  const lines = EXIT_CODES.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`);
  return `\nExit codes:\n${lines.join("\n")}`;
}

/** Returns the exit code of a problem, including codes of newer servers. */
export function exitCodeOf({
  code,
  status,
}: {
  readonly code: string;
  readonly status: number;
}): number {
  if (code in ERRORS) return ERRORS[code as ErrorCode].exitCode;
  if (status === 401 || status === 403) return 7;
  if (status === 404) return 3;
  if (status === 409 || status === 412) return 4;
  if (status === 0 || status === 429 || (status >= 502 && status <= 504)) return 6;
  return status < 500 ? 2 : 1;
}
