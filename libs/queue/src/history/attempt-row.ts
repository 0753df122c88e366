import { defined, type OutcomeKind } from "@konverge/core";

/** An attempt in the search index: its searchable fields, and those of a list. */
export interface AttemptRow {
  /** `controller/cluster/resource.group/namespace/name`. */
  readonly key: string;
  readonly epoch: number;
  readonly outcome: OutcomeKind | "lost";
  /** Empty without a failure. */
  readonly errorCode: string;
  /** Competing field managers. */
  readonly managers: readonly string[];
  /** Codes of docs/hints.md. */
  readonly hints: readonly string[];
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly conflicts: number;
  readonly writes: number;
  readonly calls: number;
  readonly worker: string;
  /** The start of the message of the failure. */
  readonly errorMessage?: string;
}

/** Longer messages are cut; the record has the full one. */
const MAX_MESSAGE = 160;

/** Encodes a row as a list: field names would take half of the memory. Only failures have a message. The script `begin` writes lost attempts like this. */
export function encodeRow(row: AttemptRow): string {
  const message = row.errorMessage?.replaceAll(/\s+/g, " ").slice(0, MAX_MESSAGE) ?? "";
  return JSON.stringify([
    row.key,
    row.epoch,
    row.outcome,
    row.errorCode,
    row.managers,
    row.hints,
    row.startedAtMs,
    row.durationMs,
    row.conflicts,
    row.writes,
    row.calls,
    row.worker,
    ...(message === "" ? [] : [message]),
  ]);
}

type Encoded = [
  key: string,
  epoch: number,
  outcome: AttemptRow["outcome"],
  errorCode: string,
  managers: string[],
  hints: string[],
  startedAtMs: number,
  durationMs: number,
  conflicts: number,
  writes: number,
  calls: number,
  worker: string,
  errorMessage?: string,
];

export function decodeRow(text: string): AttemptRow {
  const [key, epoch, outcome, errorCode, managers, hints, startedAtMs, durationMs, ...rest] =
    JSON.parse(text) as Encoded;
  const [conflicts, writes, calls, worker, errorMessage] = rest;
  return {
    key,
    epoch,
    outcome,
    errorCode,
    // Lua encodes an empty list as an object.
    managers: Array.isArray(managers) ? managers : [],
    hints: Array.isArray(hints) ? hints : [],
    startedAtMs,
    durationMs,
    conflicts,
    writes,
    calls,
    worker,
    ...defined({ errorMessage }),
  };
}
