import type { OverviewController, OverviewProblem } from "@konverge/contracts";
import { defined } from "@konverge/core";
import type { ServedQueue } from "@konverge/queue";
import { count, sinceMs, tallied, trendOf } from "./problem-text.ts";

/** More about a controller than its row in the overview. */
export interface ControllerTrouble {
  /** Attempts of the last hour whose worker died. */
  readonly lost: number;
  /** The minute of the first of them. */
  readonly lostMs?: number | undefined;
  /** Start and error text of the dead letters that were read. */
  readonly deadLetters: readonly { readonly since: string; readonly error?: string }[];
  /** Errors of the last failed attempts. */
  readonly errors: readonly AttemptError[];
}

/** What {@link findControllerProblems} examines besides the row. */
type Examined = ControllerTrouble & { readonly served: ServedQueue | undefined };

interface AttemptError {
  readonly code: string;
  /** Its message, or its code. */
  readonly text: string;
  readonly atMs: number;
}

const MINUTE_MS = 60_000;
/** Ten times the age in a busy queue. */
const OLD_MS = 60_000;
/** The period of recent failures. Fewer failures are retries that succeeded. */
const RECENT_MINUTES = 5;
export const RECENT_MS: number = RECENT_MINUTES * MINUTE_MS;
export const MIN_FAILED = 3;
const FAILING_SHARE = 0.1;

/** Finds the problems of a controller. */
export function findControllerProblems(
  row: OverviewController,
  trouble: Examined,
): OverviewProblem[] {
  const problems = [
    ofUnserved(row, trouble),
    ofDeadLetters(row, trouble),
    ofBacklog(row),
    ofFailures(row, trouble),
    ofLost(row, trouble),
  ];
  return problems.flatMap((problem) =>
    problem === undefined ? [] : [{ ...problem, subject: row.name, controller: row.name }],
  );
}

function ofUnserved(
  { name, workers, waiting, oldestRequestAgeMs = 0 }: OverviewController,
  { served }: Examined,
): OverviewProblem | undefined {
  if (workers > 0 || waiting === 0) return undefined;
  return {
    code: "unserved",
    level: "error",
    count: waiting,
    message: `${name}: ${count(waiting, "object")} waiting, but no worker runs the controller`,
    // Work waited for a worker from the first request without one.
    ...sinceMs(Math.max(Date.now() - oldestRequestAgeMs, served?.seenMs ?? 0)),
    cause: `No live worker has ${name} in its configuration`,
    consequence: "Requests are kept until a worker starts.",
    action: "Start a worker with the configuration of the controller",
  };
}

function ofDeadLetters(
  { name, deadLetters: total }: OverviewController,
  { deadLetters }: ControllerTrouble,
): OverviewProblem | undefined {
  if (total === 0) return undefined;
  const since = deadLetters.map((each) => each.since).toSorted()[0];
  const errors = deadLetters.flatMap(({ error }) => error ?? []);
  return {
    code: "dead_letters",
    level: "error",
    count: total,
    trend: deadLetters.some((each) => Date.now() - Date.parse(each.since) < RECENT_MS)
      ? "rising"
      : "steady",
    message: `${name}: ${total >= 100 ? "100 or more" : total} dead-lettered ${total === 1 ? "key" : "keys"}`,
    ...defined({ since }),
    ...(errors.length === 0 ? {} : { cause: tallied(errors) }),
    consequence: "These objects are not reconciled until they change or are released.",
    action: `Fix the cause, then run \`konverge dead-letter release ${name} ...\``,
  };
}

function ofBacklog({
  name,
  workers,
  waiting,
  active,
  slots,
  oldestRequestAgeMs = 0,
}: OverviewController): OverviewProblem | undefined {
  if (oldestRequestAgeMs <= OLD_MS || workers === 0) return undefined;
  return {
    code: "backlog",
    level: "warning",
    count: waiting,
    message: `${name}: oldest request has waited ${Math.round(oldestRequestAgeMs / 1_000)} s`,
    ...sinceMs(Date.now() - oldestRequestAgeMs),
    cause: `${count(active, "attempt")} running${slots === undefined ? "" : ` in ${count(slots, "slot")}`}`,
    consequence: `${count(waiting, "request")} queued, none lost.`,
    action: "Start more workers, or raise concurrency",
  };
}

function ofFailures(
  { name, minutes }: OverviewController,
  { errors, deadLetters }: ControllerTrouble,
): OverviewProblem | undefined {
  const recent = minutes.slice(-RECENT_MINUTES);
  const failed = recent.reduce((sum, each) => sum + each.failed, 0);
  const all = recent.reduce((sum, each) => sum + each.ok + each.failed + each.conflict, 0);
  if (failed < MIN_FAILED || failed <= all * FAILING_SHARE) return undefined;
  return {
    code: "failing",
    level: "warning",
    count: failed,
    trend: trendOf(minutes.map((each) => each.failed)),
    message: `${name}: ${failed} of ${all} attempts failed in ${RECENT_MINUTES} minutes`,
    since: new Date(startOfFailures(minutes)).toISOString(),
    cause: causeOf(errors, deadLetters),
    consequence: "Failed attempts are retried with backoff.",
    action: `See the errors with \`konverge attempt list --controller ${name} --outcome retry\``,
  };
}

/** The search for errors ends early if other controllers have many attempts. */
function causeOf(
  errors: ControllerTrouble["errors"],
  deadLetters: ControllerTrouble["deadLetters"],
): string {
  if (errors.length > 0) return tallied(errors.map(({ text }) => text));
  const known = deadLetters.flatMap(({ error }) => error ?? []);
  return known.length > 0 ? tallied(known) : "Not found among the newest attempts of the cluster";
}

function ofLost(
  { name, minutes }: OverviewController,
  { lost, lostMs }: ControllerTrouble,
): OverviewProblem | undefined {
  if (lost === 0 || minutes.length === 0) return undefined;
  return {
    code: "lost",
    level: "warning",
    count: lost,
    message: `${name}: ${count(lost, "attempt")} lost ${lost === 1 ? "its" : "their"} worker in the last hour`,
    ...sinceMs(lostMs),
    cause: "Worker processes ended without a shutdown, or did not renew their leases",
    consequence: "The attempts were repeated on other workers.",
    action: "See the exit codes and memory limits of the workers",
  };
}

/** Returns the start of the minute of the first failure that was followed by more, without a longer pause. */
function startOfFailures(minutes: OverviewController["minutes"]): number {
  let first = minutes.length - 1;
  for (let at = first, quiet = 0; at >= 0 && quiet < RECENT_MINUTES; at--) {
    quiet = (minutes[at]?.failed ?? 0) > 0 ? 0 : quiet + 1;
    if (quiet === 0) first = at;
  }
  const now = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  return now - (minutes.length - 1 - first) * MINUTE_MS;
}
