import type { AttemptRecord } from "@konverge/records";
import {
  contentionObject,
  type ContentionNote,
  type ContentionPair,
  type HistoryBatch,
  type RollupNote,
  type StoredAttempt,
} from "@konverge/queue";

/** Maximum per second. Beyond it the search index has gaps; the queue has none. */
const MOST_ROWS = 5_000;
const MOST_CONTENDED = 200;
const MOST_PAIRS = 20;
const MINUTE_MS = 60_000;

type Conflict = AttemptRecord["writes"][number]["conflicts"][number];

/** Aggregates attempts until `take`. */
export interface HistoryCollector {
  readonly add: (record: AttemptRecord, recordBytes: number) => void;
  /** Adds a lost attempt, which the queue has recorded. */
  readonly addLost: (key: string, stored: StoredAttempt) => void;
  readonly take: () => Pick<HistoryBatch, "rows" | "contention" | "rollups">;
}

interface Entry {
  conflicts: number;
  readonly pairs: Map<string, ContentionPair>;
}

export function createHistoryBatch(): HistoryCollector {
  let rows: HistoryBatch["rows"][number][] = [];
  let contention = new Map<string, Entry>();
  let rollups = new Map<
    string,
    { controller: string; minute: number; counts: Record<string, number> }
  >();

  const contentionOf = (object: string): Entry | undefined => {
    const known = contention.get(object);
    if (known !== undefined || contention.size >= MOST_CONTENDED) return known;
    const entry: Entry = { conflicts: 0, pairs: new Map() };
    contention.set(object, entry);
    return entry;
  };
  const addPair = (
    { pairs }: Entry,
    kind: ContentionPair["kind"],
    manager: string,
    path: string,
  ) => {
    const id = `${kind}\n${manager}\n${path}`;
    const known = pairs.get(id);
    if (known === undefined && pairs.size >= MOST_PAIRS) return;
    pairs.set(id, { kind, manager, path, count: (known?.count ?? 0) + 1 });
  };
  const addConflict = (object: string, { competingWriters }: Conflict) => {
    const entry = contentionOf(object);
    if (entry === undefined) return;
    entry.conflicts += 1;
    for (const { manager, paths } of competingWriters) {
      for (const path of paths.length === 0 ? [""] : paths)
        addPair(entry, "conflict", manager, path);
    }
  };
  const addRollup = (record: AttemptRecord, conflicts: number) => {
    const { controller } = record;
    const minute = Math.floor(Date.parse(record.finishedAt) / MINUTE_MS);
    const id = `${minute}/${controller}`;
    const rollup = rollups.get(id) ?? { controller, minute, counts: {} };
    rollups.set(id, rollup);
    const add = (name: string, by: number) => {
      if (by !== 0) rollup.counts[name] = (rollup.counts[name] ?? 0) + Math.round(by);
    };
    add(`outcome.${record.outcome}`, 1);
    add("conflicts", conflicts);
    add("writes", record.writes.length);
    add("calls", record.calls.count);
    add("ms", record.durationMs);
  };

  return {
    add: (record, recordBytes) => {
      for (const write of record.writes) {
        const { conflicts, fieldsTakenOver = [] } = write;
        if (conflicts.length === 0 && fieldsTakenOver.length === 0) continue;
        const object = contentionObject(write);
        for (const conflict of conflicts) addConflict(object, conflict);
        const entry = fieldsTakenOver.length === 0 ? undefined : contentionOf(object);
        if (entry === undefined) continue;
        for (const { manager, path } of fieldsTakenOver) addPair(entry, "takeover", manager, path);
      }
      for (const conflict of record.conflicts) addConflict(contentionObject(conflict), conflict);
      const conflicts = conflictsOf(record);
      addRollup(record, conflicts.length);
      if (rows.length < MOST_ROWS) rows.push({ row: rowOf(record, conflicts), recordBytes });
    },
    addLost: (key, { id, worker, startedAtMs, endedAtMs, record }) => {
      if (rows.length >= MOST_ROWS) return;
      const row = {
        key,
        epoch: Number(id),
        outcome: "lost",
        errorCode: "",
        managers: [],
        hints: [],
        startedAtMs,
        durationMs: Math.max(0, endedAtMs - startedAtMs),
        conflicts: 0,
        writes: 0,
        calls: 0,
        worker,
      } as const;
      rows.push({ row, recordBytes: Buffer.byteLength(record) });
    },
    take: () => {
      const taken = {
        rows,
        contention: [...contention].map(([object, { conflicts, pairs }]): ContentionNote => {
          return { object, conflicts, pairs: [...pairs.values()] };
        }),
        rollups: [...rollups.values()] satisfies RollupNote[],
      };
      rows = [];
      contention = new Map();
      rollups = new Map();
      return taken;
    },
  };
}

/** Returns the objects with fields that the attempt took over. */
export function takenFrom({ writes }: AttemptRecord): string[] {
  return writes
    .filter(({ fieldsTakenOver = [] }) => fieldsTakenOver.length > 0)
    .map(contentionObject);
}

function conflictsOf({ writes, conflicts }: AttemptRecord): Conflict[] {
  return [...writes.flatMap((write) => write.conflicts), ...conflicts];
}

function rowOf(
  record: AttemptRecord,
  conflicts: readonly Conflict[],
): HistoryBatch["rows"][number]["row"] {
  const { error, hints = [] } = record;
  const managers = conflicts.flatMap(({ competingWriters }) =>
    competingWriters.map(({ manager }) => manager),
  );
  return {
    key: record.key,
    epoch: record.epoch ?? 0,
    outcome: record.outcome,
    errorCode: error === undefined ? "" : [error.code, error.reason ?? []].flat().join("."),
    managers: [...new Set(managers)].slice(0, 5),
    hints: hints.map(({ code }) => code),
    startedAtMs: Date.parse(record.startedAt),
    durationMs: record.durationMs,
    conflicts: conflicts.length,
    writes: record.writes.length,
    calls: record.calls.count,
    worker: record.worker,
  };
}
