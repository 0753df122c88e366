import type { RunWarning } from "../store/run-record.ts";

/** The size of a run's journal, which each execution reads as a whole. */
export interface RunSize {
  readonly steps: number;
  /** Names and records as JSON. */
  readonly bytes: number;
}

const MAX_STEPS = 1_000;
const MAX_BYTES = 4 * 1_024 * 1_024;
/** Share of a limit at which a warning is given. */
const WARN_AT = 0.5;

const FIX_OF_STEPS = "move parts of the work to child workflows";
const FIX_OF_BYTES = "return references instead of data, or move parts to child workflows";

/** Returns why a run may have no further step; undefined if it may. */
export function findFull({ steps, bytes }: RunSize): string | undefined {
  if (steps >= MAX_STEPS) {
    return `the run has ${steps} recorded steps, the limit is ${MAX_STEPS}; ${FIX_OF_STEPS}`;
  }
  if (bytes >= MAX_BYTES) {
    return `the run has ${bytes} bytes of records, the limit is ${MAX_BYTES}; ${FIX_OF_BYTES}`;
  }
  return undefined;
}

/** Returns a warning for each limit that is half reached. */
export function findWarnings({ steps, bytes }: RunSize): readonly RunWarning[] {
  const warnings: RunWarning[] = [];
  if (steps >= MAX_STEPS * WARN_AT) {
    const message = `the run has ${steps} recorded steps and is blocked at ${MAX_STEPS}; ${FIX_OF_STEPS}`;
    warnings.push({ code: "many_steps", message });
  }
  if (bytes >= MAX_BYTES * WARN_AT) {
    const message = `the run has ${bytes} bytes of records and is blocked at ${MAX_BYTES}; ${FIX_OF_BYTES}`;
    warnings.push({ code: "many_bytes", message });
  }
  return warnings;
}

/** Returns the size of a record with its name. */
export function bytesOf(step: string, record: unknown): number {
  return Buffer.byteLength(step) + Buffer.byteLength(JSON.stringify(record));
}
