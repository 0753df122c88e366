import type { PlanRecord } from "@konverge/records";

/** Largest record in characters of JSON. */
export const MOST_CHARACTERS = 200_000;
/** Largest part of a record that is not about a change, such as its events. */
const MOST_OF_PART = 20_000;
const LISTS = ["events", "externals", "runs", "gaps"] as const;

/** Removes the log, then patches and changes from the end, until the record fits. */
export function fitPlan(record: PlanRecord): PlanRecord {
  if (sizeOf(record) <= MOST_CHARACTERS) return record;
  const { log: _dropped, ...rest } = withShortLists(record);
  if (sizeOf(rest) <= MOST_CHARACTERS) return rest;
  const room = MOST_CHARACTERS - sizeOf({ ...rest, changes: [] });
  const changes = withoutPatches(rest.changes, room);
  if (sizeOf(changes) <= room) return { ...rest, changes };
  // Takes room for `moreChanges` as well.
  const kept = startWithin(changes, room - 50);
  const moreChanges = (rest.moreChanges ?? 0) + changes.length - kept.length;
  return { ...rest, changes: kept, moreChanges };
}

function withShortLists(record: PlanRecord): PlanRecord {
  const short = Object.fromEntries(
    LISTS.map((list) => [list, startWithin<unknown>(record[list], MOST_OF_PART)]),
  ) as Pick<PlanRecord, (typeof LISTS)[number]>;
  const cut = LISTS.reduce((sum, list) => sum + record[list].length - short[list].length, 0);
  const moreNotes = (record.moreNotes ?? 0) + cut;
  return { ...record, ...short, ...(moreNotes === 0 ? {} : { moreNotes }) };
}

/** Removes patches from the end while the changes do not fit, then the lists of writes and of fields. */
function withoutPatches(changes: PlanRecord["changes"], room: number): PlanRecord["changes"] {
  let over = sizeOf(changes) - room;
  const fitting = [...changes];
  const shorten = (shorter: (change: PlanRecord["changes"][number]) => typeof change) => {
    for (let index = fitting.length - 1; index >= 0 && over > 0; index -= 1) {
      const change = fitting[index];
      if (change === undefined) return;
      const next = shorter(change);
      over -= sizeOf(change) - sizeOf(next);
      fitting[index] = next;
    }
  };
  shorten(({ patch: _dropped, ...change }) => change);
  shorten(({ fieldsTakenOver: _fields, ...change }) => {
    const [first] = change.writes;
    const moreWrites = (change.moreWrites ?? 0) + change.writes.length - 1;
    return first === undefined || moreWrites === 0
      ? change
      : { ...change, writes: [first], moreWrites };
  });
  return fitting;
}

/** The longest start of a list that has at most this size. */
function startWithin<T>(list: readonly T[], most: number): T[] {
  let size = 2;
  const end = list.findIndex((entry) => {
    size += sizeOf(entry) + 1;
    return size > most;
  });
  return end === -1 ? [...list] : list.slice(0, end);
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value).length;
}
