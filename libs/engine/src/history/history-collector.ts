import type { AttemptRecord } from "@konverge/records";
import {
  contentionObject,
  durationCounter,
  type ContentionNote,
  type ContentionPair,
  type HistoryBatch,
  type RollupNote,
  type StoredAttempt,
  type WasteNote,
} from "@konverge/queue";

/** Maximum per second. Beyond it the search index has gaps; the queue has none. */
const MOST_ROWS = 5_000;
const MOST_CONTENDED = 200;
const MOST_PAIRS = 20;
const MINUTE_MS = 60_000;

type Conflict = AttemptRecord["writes"][number]["conflicts"][number];

interface Entry {
  conflicts: number;
  readonly pairs: Map<string, ContentionPair>;
}

interface Rollup {
  readonly controller: string;
  readonly minute: number;
  readonly counts: Record<string, number>;
}

export interface WasteOptions {
  /** The key is in a loop of its own writes. */
  readonly isLoop: boolean;
  /** Takeovers are intended and not counted. */
  readonly isTakeoverAccepted: boolean;
}

/** Aggregates attempts until `take`. */
export class HistoryCollector {
  #rows: HistoryBatch["rows"][number][] = [];
  #contention = new Map<string, Entry>();
  #wasted = new Map<string, WasteNote>();
  #rollups = new Map<string, Rollup>();

  add(record: AttemptRecord, recordBytes: number, waste: WasteOptions): void {
    // Contention on objects of another cluster is not recorded for this cluster.
    const isOwn = ({ cluster }: { readonly cluster?: string | undefined }) => cluster === undefined;
    for (const write of record.writes.filter(isOwn)) this.#addWrite(write);
    for (const conflict of record.conflicts.filter(isOwn)) {
      this.#addConflict(contentionObject(conflict), conflict);
    }
    const conflicts = conflictsOf(record);
    this.#addRollup(record, conflicts.length);
    this.#addWaste(record, waste);
    if (this.#rows.length < MOST_ROWS) {
      this.#rows.push({ row: rowOf(record, conflicts), recordBytes });
    }
  }

  /** Adds a lost attempt, which the queue has recorded. */
  addLost(key: string, { id, worker, startedAtMs, endedAtMs, record }: StoredAttempt): void {
    if (this.#rows.length >= MOST_ROWS) return;
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
    this.#rows.push({ row, recordBytes: Buffer.byteLength(record) });
  }

  take(): Pick<HistoryBatch, "rows" | "contention" | "wasted" | "rollups"> {
    const contention = [...this.#contention].map(
      ([object, { conflicts, pairs }]): ContentionNote => {
        return { object, conflicts, pairs: [...pairs.values()] };
      },
    );
    const rollups: RollupNote[] = [...this.#rollups.values()];
    const wasted = [...this.#wasted.values()];
    const taken = { rows: this.#rows, contention, wasted, rollups };
    this.#wasted = new Map();
    this.#rows = [];
    this.#contention = new Map();
    this.#rollups = new Map();
    return taken;
  }

  /** Counts writes without a lasting effect: conflicts, overwrites of another manager, and writes in a loop. */
  #addWaste(record: AttemptRecord, { isLoop, isTakeoverAccepted }: WasteOptions): void {
    const minute = Math.floor(Date.parse(record.finishedAt) / MINUTE_MS);
    const { controller } = record;
    const add = (object: string, writes: number) => {
      const id = `${minute} ${controller} ${object}`;
      const known = this.#wasted.get(id);
      if (writes === 0 || (known === undefined && this.#wasted.size >= MOST_CONTENDED)) return;
      this.#wasted.set(id, { object, controller, minute, writes: (known?.writes ?? 0) + writes });
    };
    for (const write of record.writes) {
      if (write.cluster !== undefined) continue;
      const overwrites = isTakeoverAccepted ? 0 : Math.min(1, write.fieldsTakenOver?.length ?? 0);
      add(contentionObject(write), write.conflicts.length + Math.max(overwrites, isLoop ? 1 : 0));
    }
    for (const conflict of record.conflicts) {
      if (conflict.cluster === undefined) add(contentionObject(conflict), 1);
    }
  }

  #addWrite(write: AttemptRecord["writes"][number]): void {
    const { conflicts, fieldsTakenOver = [] } = write;
    if (conflicts.length === 0 && fieldsTakenOver.length === 0) return;
    const object = contentionObject(write);
    for (const conflict of conflicts) this.#addConflict(object, conflict);
    const entry = fieldsTakenOver.length === 0 ? undefined : this.#contentionOf(object);
    if (entry === undefined) return;
    for (const { manager, path } of fieldsTakenOver) addPair(entry, "takeover", manager, path);
  }

  #addConflict(object: string, { competingWriters }: Conflict): void {
    const entry = this.#contentionOf(object);
    if (entry === undefined) return;
    entry.conflicts += 1;
    for (const { manager, paths } of competingWriters) {
      for (const path of paths.length === 0 ? [""] : paths) {
        addPair(entry, "conflict", manager, path);
      }
    }
  }

  #contentionOf(object: string): Entry | undefined {
    const known = this.#contention.get(object);
    if (known !== undefined || this.#contention.size >= MOST_CONTENDED) return known;
    const entry: Entry = { conflicts: 0, pairs: new Map() };
    this.#contention.set(object, entry);
    return entry;
  }

  #addRollup(record: AttemptRecord, conflicts: number): void {
    const { controller } = record;
    const minute = Math.floor(Date.parse(record.finishedAt) / MINUTE_MS);
    const id = `${minute}/${controller}`;
    const counts = this.#rollups.get(id)?.counts ?? {};
    this.#rollups.set(id, { controller, minute, counts });
    const add = (name: string, by: number) => {
      if (by !== 0) counts[name] = (counts[name] ?? 0) + Math.round(by);
    };
    add(`outcome.${record.outcome}`, 1);
    add("conflicts", conflicts);
    add("writes", record.writes.length);
    add("calls", record.calls.count);
    add("ms", record.durationMs);
    if (record.outcome !== "deferred") add(durationCounter(record.durationMs), 1);
  }
}

function addPair(
  { pairs }: Entry,
  kind: ContentionPair["kind"],
  manager: string,
  path: string,
): void {
  const id = `${kind}\n${manager}\n${path}`;
  const known = pairs.get(id);
  if (known === undefined && pairs.size >= MOST_PAIRS) return;
  pairs.set(id, { kind, manager, path, count: (known?.count ?? 0) + 1 });
}

/** Returns the objects with fields that the attempt took over. */
export function takenFrom({ writes }: AttemptRecord): string[] {
  return writes
    .filter(
      ({ cluster, fieldsTakenOver = [] }) => cluster === undefined && fieldsTakenOver.length > 0,
    )
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
    ...(error === undefined ? {} : { errorMessage: error.message }),
  };
}
