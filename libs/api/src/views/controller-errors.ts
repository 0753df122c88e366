import type { OverviewController } from "@konverge/contracts";
import type { AttemptRow, HistoryReader } from "@konverge/queue";
import { covers, type Caller } from "../access/caller.ts";
import { placeOf } from "../queues/place-of.ts";
import { MIN_FAILED, RECENT_MS, type ControllerTrouble } from "./find-controller-problems.ts";
import { FAILED_OUTCOMES } from "./read-activity.ts";

const MINUTE_MS = 60_000;
/** Attempts that a search returns. */
const MOST_FOUND = 100;
/** Attempts that a search reads, in 20 round trips. Not a time, so that the cause is also found on a busy machine. */
const MOST_SCANNED = 5_000;

/** Returns the errors of the sampled attempts. If other controllers fill the sample, those of a failing one are searched. */
export async function errorsOf(
  sampled: readonly AttemptRow[],
  {
    history,
    controller,
    minutes,
    caller,
  }: {
    readonly history: HistoryReader;
    readonly controller: string;
    /** The outcomes of its attempts. */
    readonly minutes: OverviewController["minutes"];
    readonly caller: Caller;
  },
): Promise<ControllerTrouble["errors"]> {
  const known = sampled.flatMap(errorIn);
  if (known.length > 0) return known;
  const recent = minutes.slice(-RECENT_MS / MINUTE_MS);
  if (recent.reduce((sum, { failed }) => sum + failed, 0) < MIN_FAILED) return [];
  const { items } = await history.search({
    controller,
    sinceMs: Date.now() - RECENT_MS,
    limit: MOST_FOUND,
    maxScanned: MOST_SCANNED,
  });
  return items.filter(({ key }) => covers(caller.scope, placeOf(key))).flatMap(errorIn);
}

function errorIn({
  outcome,
  errorCode: code,
  errorMessage,
  startedAtMs,
  durationMs,
}: AttemptRow): ControllerTrouble["errors"] {
  return FAILED_OUTCOMES.includes(outcome) && code !== ""
    ? [{ code, text: errorMessage ?? code, atMs: startedAtMs + durationMs }]
    : [];
}
