import type { ConflictRecord } from "../contract/call-record.ts";

/** Completes a conflict record. The defaults describe a first try that was not retried, without a read after it. */
export function conflictRecord(
  parts: Pick<ConflictRecord, "ref" | "readVersion"> & Partial<ConflictRecord>,
): ConflictRecord {
  return { atMs: Date.now(), try: 1, competingWriters: [], isThrown: true, waitedMs: 0, ...parts };
}
