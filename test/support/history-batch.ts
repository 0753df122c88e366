import {
  createHistoryWriter,
  type AttemptRow,
  type HistoryBatch,
  type HistoryWriter,
  type RedisTarget,
} from "@konverge/queue";
import { onTestFinished } from "vitest";

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

/** Returns a writer to the history of a cluster, which is closed after the test. */
export function openHistoryWriter(
  { target: redis, prefix }: { readonly target: RedisTarget; readonly prefix: string },
  cluster = "default",
): HistoryWriter {
  const writer = createHistoryWriter({
    redis,
    prefix,
    cluster,
    budgetBytes: 1_000_000,
    onError: () => undefined,
  });
  onTestFinished(() => writer.close());
  return writer;
}
