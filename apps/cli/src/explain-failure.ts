import { ERRORS, showRedisUrl, type KonvergeError } from "@konverge/core";

/** How a command ends that could not do what was asked. */
export interface Failure {
  /** One line: what is wrong with which option, and the cure. */
  readonly line: string;
  readonly exitCode: number;
}

export interface FailureContext {
  /** Undefined when the settings could not be read. */
  readonly redisUrl: string | undefined;
  /** How the fields of an order are typed here, by JSON pointer. */
  readonly options: Readonly<Record<string, string>>;
}

/** In the words of the command line; the exit code is the error table's. */
export function explainFailure(error: KonvergeError, context: FailureContext): Failure {
  const { redisUrl, options } = context;
  const { exitCode } = ERRORS[error.code];
  if (error.code === "redis_unavailable") {
    const where = redisUrl === undefined ? "" : ` at ${showRedisUrl(redisUrl)}`;
    return { line: oneLine(error.message.replace(/^Redis/, `Redis${where}`)), exitCode };
  }
  const issues = error.issues.map(({ pointer, detail }) =>
    pointer in options ? `${options[pointer]}: ${detail}` : detail,
  );
  return { line: oneLine(issues.length > 0 ? issues.join("; ") : error.message), exitCode };
}

/** What others wrote must not steer this terminal, nor begin a line. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll(/\p{Cc}/gu, "?");
}
