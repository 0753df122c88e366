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
import type { NotedEnd } from "../attempt/noted-end.ts";

/** Maximum per second. Beyond it the search index has gaps; the queue has none. */
const MOST_ROWS = 5_000;
const MOST_CONTENDED = 200;
const MOST_PAIRS = 20;
const MINUTE_MS = 60_000;

type Conflict = AttemptRecord["writes"][number]["conflicts"][number];

type Target = Parameters<typeof contentionObject>[0] & { readonly cluster?: string | undefined };

interface Entry {
  readonly object: string;
  readonly cluster: string | undefined;
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

type Measured = Pick<NotedEnd, "convergence" | "slo">;

/** Aggregates attempts until `take`. */
export class HistoryCollector {
  #rows: HistoryBatch["rows"][number][] = [];
  #contention = new Map<string, Entry>();
  #wasted = new Map<string, WasteNote>();
  #rollups = new Map<string, Rollup>();

  add(
    record: AttemptRecord,
    recordBytes: number,
    { convergence, slo, ...waste }: WasteOptions & Partial<Measured>,
  ): void {
    for (const write of record.writes) this.#addWrite(write);
    for (const conflict of record.conflicts) this.#addConflict(conflict, conflict);
    const conflicts = conflictsOf(record);
    this.#addRollup(record, conflicts.length, { convergence, slo });
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
    const contention = [...this.#contention.values()].map(
      ({ pairs, ...entry }): ContentionNote => ({ ...entry, pairs: [...pairs.values()] }),
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
    const add = (target: Target, writes: number) => {
      const { cluster } = target;
      const object = contentionObject(target);
      const id = `${minute} ${controller} ${cluster ?? ""} ${object}`;
      const known = this.#wasted.get(id);
      if (writes === 0 || (known === undefined && this.#wasted.size >= MOST_CONTENDED)) return;
      const sum = (known?.writes ?? 0) + writes;
      this.#wasted.set(id, { object, cluster, controller, minute, writes: sum });
    };
    for (const write of record.writes) {
      const overwrites = isTakeoverAccepted ? 0 : Math.min(1, write.fieldsTakenOver?.length ?? 0);
      // Changes in another cluster do not reconcile the object.
      const loops = isLoop && write.cluster === undefined ? 1 : 0;
      add(write, write.conflicts.length + Math.max(overwrites, loops));
    }
    for (const conflict of record.conflicts) add(conflict, 1);
  }

  #addWrite(write: AttemptRecord["writes"][number]): void {
    const { conflicts, fieldsTakenOver = [] } = write;
    if (conflicts.length === 0 && fieldsTakenOver.length === 0) return;
    for (const conflict of conflicts) this.#addConflict(write, conflict);
    const entry = fieldsTakenOver.length === 0 ? undefined : this.#contentionOf(write);
    if (entry === undefined) return;
    for (const { manager, path } of fieldsTakenOver) addPair(entry, "takeover", manager, path);
  }

  #addConflict(target: Target, { competingWriters }: Conflict): void {
    const entry = this.#contentionOf(target);
    if (entry === undefined) return;
    entry.conflicts += 1;
    for (const { manager, paths } of competingWriters) {
      for (const path of paths.length === 0 ? [""] : paths) {
        addPair(entry, "conflict", manager, path);
      }
    }
  }

  #contentionOf(target: Target): Entry | undefined {
    const { cluster } = target;
    const object = contentionObject(target);
    const id = `${cluster ?? ""} ${object}`;
    const known = this.#contention.get(id);
    if (known !== undefined || this.#contention.size >= MOST_CONTENDED) return known;
    const entry: Entry = { object, cluster, conflicts: 0, pairs: new Map() };
    this.#contention.set(id, entry);
    return entry;
  }

  #addRollup(
    record: AttemptRecord,
    conflicts: number,
    { convergence, slo }: Partial<Measured>,
  ): void {
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
    for (const [cause, ms] of Object.entries(convergence ?? {})) {
      add(`convergence.${cause}`, ms);
      if (slo === "bad") add(`slo.bad.${cause}`, ms);
    }
    if (slo !== undefined) add(`slo.${slo}`, 1);
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

/** Returns the objects of the own cluster with fields that the attempt took over. */
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
