import { toMs, type Duration, type ErrorIssue } from "@konverge/core";

const LEAST_MS = 60_000;
const LEAST_BYTES = 1_048_576;

/** How long ended runs of a workflow are kept. */
export interface RunRetention {
  /** Time after the end, at least 1 min. Default: `runRetention` of the settings. */
  readonly time?: Duration;
  /**
   * Memory of all ended runs of the workflow in Redis, estimated, at least 1 MiB. Beyond it, the oldest are deleted, but none
   * within an hour after its end, and no child of a live run. Default: `runLimitMiB` of the settings. With a low value, runs are
   * deleted before users read them; a high value can fill Redis.
   */
  readonly bytes?: number;
}

/** The retention of a workflow, with the time in ms. */
export interface DefinedRetention {
  readonly timeMs?: number;
  readonly bytes?: number;
}

/** Returns the values that are not valid. */
export function findRetentionIssues({ time, bytes }: RunRetention): ErrorIssue[] {
  const issues: ErrorIssue[] = [];
  const given = time === undefined ? LEAST_MS : msOf(time);
  if (given === undefined || given < LEAST_MS) {
    const detail = `retention.time must be a duration of at least 1m (got ${JSON.stringify(time)})`;
    issues.push({ pointer: "/retention/time", detail });
  }
  if (bytes !== undefined && !(Number.isSafeInteger(bytes) && bytes >= LEAST_BYTES)) {
    const detail = `retention.bytes must be an integer >= ${LEAST_BYTES} (got ${bytes})`;
    issues.push({ pointer: "/retention/bytes", detail });
  }
  return issues;
}

function msOf(time: Duration): number | undefined {
  try {
    return toMs(time, "retention.time");
  } catch {
    return undefined;
  }
}
