import { ERRORS, type ErrorCode } from "@konverge/core";

/** How every command ends. The numbers of errors come from the one table of error codes. */
export const EXIT_CODES: readonly (readonly [code: number, meaning: string])[] = [
  [0, "done"],
  [1, "the operation failed"],
  [2, "something to correct in what was typed or configured"],
  [3, "not found"],
  [4, "conflict, or a precondition does not hold"],
  [5, "timed out waiting; the work goes on"],
  [6, "Redis or a server is away; try again later"],
  [7, "the token is missing, wrong, or does not allow it"],
  [130, "ended by SIGINT"],
  [143, "ended by SIGTERM"],
];

export function exitCodesHelp(): string {
  const lines = EXIT_CODES.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`);
  return `\nExit codes:\n${lines.join("\n")}`;
}

/** Of a problem, also one that a newer server knows and this command line does not. */
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
