import type { RunHistoryItem, RunHistoryList, RunHistoryQuery } from "@konverge/contracts";
import { defined, KonvergeError } from "@konverge/core";
import { formatRunId, type RunHistory } from "@konverge/workflow";
import { demand, type Caller } from "../access/caller.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { placeIn, type FoundRun } from "./find-run.ts";
import { formatCursor, parseCursor } from "./run-view.ts";

/** Histories that are read at a time. */
const READ_AT_ONCE = 10;
/** Bytes of histories after which a page ends. */
const MAX_PAGE_BYTES = 4 * 1_024 * 1_024;

/** @throws KonvergeError `not_found` */
export async function readHistory({ cluster, ref, workflows }: FoundRun): Promise<RunHistoryItem> {
  const history = await workflows.history(ref);
  if (history !== undefined) return itemOf(history);
  const text = formatRunId(ref, cluster);
  throw new KonvergeError("not_found", `run ${text} does not exist or was deleted`);
}

/** Lists the histories of the runs of a workflow, newest first. */
export async function listHistories(
  access: QueueAccess,
  caller: Caller,
  { cluster, workflow, status, limit, cursor }: RunHistoryQuery,
): Promise<RunHistoryList> {
  demand(caller, placeIn(cluster, workflow));
  const { workflows } = await access.runs(cluster);
  const page = await workflows.list(workflow, {
    limit,
    filter: defined({ status }),
    ...(cursor === undefined ? {} : { from: parseCursor(cursor) }),
  });
  const items: RunHistoryItem[] = [];
  let bytes = 0;
  for (let at = 0; at < page.runs.length; at += READ_AT_ONCE) {
    const runs = page.runs.slice(at, at + READ_AT_ONCE);
    const read = await Promise.all(runs.map((run) => workflows.history(run)));
    for (const history of read) {
      if (history === undefined) continue;
      items.push(itemOf(history));
      bytes += Buffer.byteLength(JSON.stringify(history));
    }
    const last = runs.at(-1);
    const isLast = at + READ_AT_ONCE >= page.runs.length;
    if (bytes > MAX_PAGE_BYTES && !isLast && last !== undefined) {
      return { items, next: formatCursor(last) };
    }
  }
  return { items, ...(page.next === undefined ? {} : { next: formatCursor(page.next) }) };
}

function itemOf({ steps, progress, ...history }: RunHistory): RunHistoryItem {
  return {
    ...history,
    steps: steps.map((step) => ({ ...step })),
    progress: progress.map((each) => ({ ...each })),
  };
}
