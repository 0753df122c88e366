import { defined } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";
import type { RunFilter, RunPlace } from "./run-queries.ts";
import type { RunQueries } from "./run-queries.ts";
import type { RunSummary } from "./run-record.ts";

/** The place of a list of several workflows: the next page begins after this run. */
export interface RunCursor extends RunRef {
  readonly createdAtMs: number;
}

export interface RunPage {
  readonly runs: readonly RunSummary[];
  /** Cursor of the next page; missing at the end. A short or empty page may have one too. */
  readonly next?: RunCursor;
}

export interface ListOptions {
  readonly limit: number;
  readonly from?: RunCursor;
  readonly filter?: RunFilter;
}

/** Returns the newest runs of several workflows that fit the filter. */
export async function listRuns(
  queries: Pick<RunQueries, "list">,
  workflows: readonly string[],
  { limit, from, filter = {} }: ListOptions,
): Promise<RunPage> {
  const pages = await Promise.all(
    workflows.map(async (workflow) => {
      const place = from === undefined ? undefined : placeIn(workflow, from);
      const { runs, next } = await queries.list(workflow, {
        limit,
        filter,
        ...defined({ from: place }),
      });
      const stop = next && cursorIn(workflow, next);
      return { runs, stop };
    }),
  );
  // After the place where the list of one workflow stopped, that workflow may have more runs.
  const stops = pages.flatMap(({ stop }) => (stop === undefined ? [] : [stop]));
  const end = stops.toSorted(byPlace)[0];
  const found = pages
    .flatMap(({ runs }) => runs)
    .filter((run) => end === undefined || byPlace(run, end) <= 0)
    .toSorted(byPlace);
  const runs = found.slice(0, limit);
  const last = runs.at(-1);
  const next = found.length > limit && last !== undefined ? cursorOf(last) : end;
  return { runs, ...defined({ next }) };
}

/** Returns true if a run fits the filter. */
export function fits(run: RunSummary, filter: RunFilter): boolean {
  const { text, labels = {}, sinceMs = -Infinity, untilMs = Infinity } = filter;
  const exact = [
    [filter.status, run.status],
    [filter.key, run.key],
    [filter.by, run.by],
    [filter.version, run.version],
    [filter.error, run.error?.code],
    ...Object.entries(labels).map(([name, value]) => [value, run.labels?.[name]]),
  ];
  if (exact.some(([wanted, is]) => wanted !== undefined && wanted !== is)) return false;
  if (filter.statuses !== undefined && !filter.statuses.includes(run.status)) return false;
  if (filter.parent !== undefined && !isParent(filter.parent, run.parent)) return false;
  if (run.createdAtMs < sinceMs || run.createdAtMs >= untilMs) return false;
  if (text === undefined) return true;
  const part = text.toLowerCase();
  return [run.id, run.key, run.by].some((each) => each?.toLowerCase().includes(part) === true);
}

function isParent(wanted: RunRef | "none", parent: RunRef | undefined): boolean {
  if (wanted === "none" || parent === undefined) return wanted === "none" && parent === undefined;
  return wanted.workflow === parent.workflow && wanted.id === parent.id;
}

/** Compares ids as Redis does: by bytes. */
export function compareIds(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Compares newest first, then by descending workflow and id. */
function byPlace(a: RunCursor, b: RunCursor): number {
  if (a.createdAtMs !== b.createdAtMs) return b.createdAtMs - a.createdAtMs;
  return compareIds(b.workflow, a.workflow) || compareIds(b.id, a.id);
}

/** Returns the place in one workflow's runs that follows a run of any workflow. */
export function placeIn(workflow: string, { createdAtMs, ...cursor }: RunCursor): RunPlace {
  const order = compareIds(workflow, cursor.workflow);
  if (order === 0) return { createdAtMs, id: cursor.id };
  return { createdAtMs: order < 0 ? createdAtMs + 1 : createdAtMs };
}

/** Returns the cursor of a place in one workflow's runs. */
export function cursorIn(workflow: string, { createdAtMs, id = "" }: RunPlace): RunCursor {
  return { workflow, id, createdAtMs };
}

function cursorOf({ workflow, id, createdAtMs }: RunSummary): RunCursor {
  return { workflow, id, createdAtMs };
}
