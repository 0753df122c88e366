import type { AttemptRow, HistoryBatch } from "@konverge/queue";

/** The search entry of a successful attempt that has just begun, with one write. */
export function attemptRow(row: Pick<AttemptRow, "key"> & Partial<AttemptRow>): AttemptRow {
  return {
    epoch: 1,
    outcome: "done",
    errorCode: "",
    managers: [],
    hints: [],
    startedAtMs: Date.now(),
    durationMs: 3,
    conflicts: 0,
    writes: 1,
    calls: 2,
    worker: "w-1",
    ...row,
  };
}

/** What a worker adds to its history at once; by default nothing. */
export function historyBatch(batch: Partial<HistoryBatch>): HistoryBatch {
  return {
    rows: [],
    contention: [],
    wasted: [],
    rollups: [],
    reports: [],
    reportAgainMs: 1,
    loops: new Map(),
    ...batch,
  };
}
