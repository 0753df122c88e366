import type { ProblemError } from "@konverge/client";
import { ERRORS, showRedisUrl, type KonvergeError } from "@konverge/core";
import { exitCodeOf } from "./exit-codes.ts";
import { plain } from "../text/plain-text.ts";

/** How a command ends that could not do what was asked. */
export interface Failure {
  /** One line: what is wrong with which option, and the cure. */
  readonly line: string;
  readonly exitCode: number;
}

export interface FailureContext {
  /** Undefined when the settings could not be read, or where a server is asked in its place. */
  readonly redisUrl: string | undefined;
  /** How the fields of a call are typed here, by JSON pointer. */
  readonly options: Readonly<Record<string, string>>;
  /** What a person can do about a code, where this command knows more than the API. */
  readonly fixes?: Readonly<Record<string, string>> | undefined;
}

/** In the words of the command line; the exit code is the error table's. */
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
  const said = issues.length > 0 ? issues.join("; ") : error.message;
  const fix = fixes[error.code];
  return { line: oneLine(fix === undefined ? said : `${said}; ${fix}`), exitCode };
}

/** What others wrote must not steer this terminal, nor begin a line. */
export function oneLine(text: string): string {
  return plain(text.replaceAll(/\s+/g, " "));
}
