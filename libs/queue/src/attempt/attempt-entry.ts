import type { OutcomeKind } from "@konverge/core";
import type { StoredAttempt } from "../contract/work-queue.ts";

/** What the list of a key's attempts says of one, besides when it ended and its record. */
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
 * An entry: a line with the time of its end (put there by the script, by Redis's clock), a line of JSON, the record. A list
 * and not a stream: a stream takes 4 KiB for a key's first attempt.
 */
export function encodeAttempt(meta: AttemptMeta, record: string): string {
  const { epoch, covered, startedAtMs, outcome, worker, errorCode, errorMessage } = meta;
  const line = [epoch, covered, startedAtMs, outcome, worker, errorCode, errorMessage];
  return `${JSON.stringify(line)}\n${record}`;
}

export function decodeAttempt(entry: string): StoredAttempt {
  const [endedAt, meta, record] = split(entry);
  const [epoch, covered, startedAtMs, outcome, worker, errorCode, errorMessage] = JSON.parse(
    meta,
  ) as [number, number, number, OutcomeKind | "lost", string, string, string];
  return {
    id: String(epoch),
    record,
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
