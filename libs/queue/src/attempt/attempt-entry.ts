import type { OutcomeKind } from "@konverge/core";
import type { StoredAttempt } from "../contract/work-queue.ts";
import { packRecord, unpackRecord } from "./pack-record.ts";

/** An attempt in the list of its key, without its end time and record. */
export interface AttemptMeta {
  readonly epoch: number;
  readonly covered: number;
  readonly startedAtMs: number;
  readonly outcome: OutcomeKind | "lost";
  readonly worker: string;
  readonly errorCode: string;
  readonly errorMessage: string;
}

/**
 * Returns a list entry: a line of JSON, then the packed record. The script prepends a line with the end time by Redis's clock.
 * Stored in a list because a stream takes 4 KiB for a key's first attempt.
 */
export function encodeAttempt(id: string, meta: AttemptMeta, record: string): string {
  const { epoch, covered, startedAtMs, outcome, worker, errorCode, errorMessage } = meta;
  const line = [epoch, covered, startedAtMs, outcome, worker, errorCode, errorMessage];
  return `${JSON.stringify(line)}\n${packRecord(record, { id, worker, startedAtMs })}`;
}

/** @param key of the list that contains the entry */
export function decodeAttempt(key: string, entry: string): StoredAttempt {
  const [endedAt, meta, record] = split(entry);
  const [epoch, covered, startedAtMs, outcome, worker, errorCode, errorMessage] = JSON.parse(
    meta,
  ) as [number, number, number, OutcomeKind | "lost", string, string, string];
  return {
    id: String(epoch),
    record: unpackRecord(record, { id: key, worker, startedAtMs }),
    outcome,
    worker,
    startedAtMs,
    endedAtMs: Number(endedAt),
    covered,
    ...(errorCode === "" ? {} : { error: { code: errorCode, message: errorMessage } }),
  };
}

function split(entry: string): [endedAt: string, meta: string, record: string] {
  const first = entry.indexOf("\n");
  const second = entry.indexOf("\n", first + 1);
  return [entry.slice(0, first), entry.slice(first + 1, second), entry.slice(second + 1)];
}
