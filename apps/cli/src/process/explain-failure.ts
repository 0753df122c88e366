import type { ProblemError } from "@konverge/client";
import { ERRORS, showRedisUrl, type KonvergeError } from "@konverge/core";
import { exitCodeOf } from "./exit-codes.ts";
import { plain } from "../text/plain-text.ts";

/** The message and exit code of a failed command. */
export interface Failure {
  /** One line with the option, the problem and the fix. */
  readonly line: string;
  readonly exitCode: number;
}

export interface FailureContext {
  /** Undefined with a server, or if the settings are invalid. */
  readonly redisUrl: string | undefined;
  /** The options behind the fields of a call, by JSON pointer. */
  readonly options: Readonly<Record<string, string>>;
  /** Fixes by error code, in addition to the message of the API. */
  readonly fixes?: Readonly<Record<string, string>> | undefined;
}

/** Describes an error by its options. The exit code comes from the error table. */
export function explainFailure(
  error: KonvergeError | ProblemError,
  { redisUrl, options, fixes = {} }: FailureContext,
): Failure {
  const exitCode = "status" in error ? exitCodeOf(error) : ERRORS[error.code].exitCode;
  if (error.code === "redis_unavailable" && redisUrl !== undefined) {
    const where = `Redis at ${showRedisUrl(redisUrl)}`;
    return { line: oneLine(error.message.replace(/^Redis/, where)), exitCode };
  }
  const issues = ("status" in error ? error.errors : error.issues).map(({ pointer, detail }) =>
    pointer in options ? `${options[pointer]}: ${detail}` : detail,
  );
  const message = issues.length > 0 ? issues.join("; ") : error.message;
  const fix = fixes[error.code];
  return { line: oneLine(fix === undefined ? message : `${message}; ${fix}`), exitCode };
}

/** Removes control characters and line breaks from foreign text. */
export function oneLine(text: string): string {
  return plain(text.replaceAll(/\s+/g, " "));
}
