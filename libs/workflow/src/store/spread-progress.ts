import type { RunRef } from "../define/run-ref.ts";
import type { RunQueries, StoredJournal } from "./run-queries.ts";

/**
 * Reads the journal of a run, with the tries and heartbeats of the spread steps that it waits for. They are stored with each step,
 * and the waits of a run name the first 20.
 */
export async function readWithSpread(
  store: Pick<RunQueries, "get" | "journal">,
  ref: RunRef,
): Promise<StoredJournal> {
  const journal = await store.journal(ref);
  // Only the notes about children and spread steps have no time.
  const isOpen = [...journal.progress.values()].some(
    ({ attempts, untilMs, childEnded }) => attempts + untilMs === 0 && childEnded !== true,
  );
  if (!isOpen) return journal;
  const { waits = [] } = (await store.get(ref)) ?? {};
  const progress = new Map(journal.progress);
  const read = waits.map(async ({ step, spread }) => {
    const noted = progress.get(step);
    if (spread === undefined || noted === undefined || noted.childEnded === true) return;
    const own = (await store.journal(spread)).progress.get(step);
    if (own !== undefined) progress.set(step, { ...noted, ...own });
  });
  await Promise.all(read);
  return { ...journal, progress };
}
