import { ERRORS, showRedisUrl, type KonvergeError } from "@konverge/core";

/** How a guard command ends that could not do what was asked. */
interface GuardFailure {
  /** One line: what is wrong with which option, and the cure. */
  readonly line: string;
  readonly exitCode: number;
}

export interface FailureContext {
  /** Of the cluster that was named. */
  readonly cluster: string | undefined;
  /** Undefined when the settings could not be read. */
  readonly redisUrl: string | undefined;
}

/** The fields of an order, as they are typed here. */
const OPTIONS: Readonly<Record<string, string>> = {
  "/by": "--by",
  "/reason": "--reason",
  "/ratePerSecond": "<rate>",
};

/** In the words of the command line; the exit code is the error table's. */
export function explainGuardFailure(error: KonvergeError, context: FailureContext): GuardFailure {
  switch (error.code) {
    case "redis_unavailable": {
      const where = context.redisUrl === undefined ? "" : ` at ${showRedisUrl(context.redisUrl)}`;
      return {
        line: oneLine(error.message.replace(/^Redis/, `Redis${where}`)),
        exitCode: ERRORS[error.code].exitCode,
      };
    }
    case "not_found": {
      const cure = "start a worker of it, or take a name from `konverge guard list`";
      return {
        line: oneLine(
          `<cluster>: no worker has guarded a cluster "${context.cluster}" yet; ${cure}`,
        ),
        exitCode: ERRORS[error.code].exitCode,
      };
    }
    default: {
      const issues = error.issues.map(({ pointer, detail }) =>
        pointer in OPTIONS ? `${OPTIONS[pointer]}: ${detail}` : detail,
      );
      return {
        line: oneLine(issues.length > 0 ? issues.join("; ") : error.message),
        exitCode: ERRORS[error.code].exitCode,
      };
    }
  }
}

/** What others wrote must not steer this terminal, nor begin a line. */
function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll(/\p{Cc}/gu, "?");
}
