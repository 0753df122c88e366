import type { RunWarning } from "../store/run-record.ts";

/** What is recorded of a run. All of it is read at each activation. */
export interface RunSize {
  readonly steps: number;
  /** Names and records as JSON. */
  readonly bytes: number;
}

const MAX_STEPS = 1_000;
const MAX_BYTES = 1_024 * 1_024;
/** From this share of a bound on it is told. */
const WARN_AT = 0.5;

const FIX_OF_STEPS = "hand parts of the work to children";
const FIX_OF_BYTES = "let steps return references in place of data, or hand parts to children";

/** Why a run may have no further step; undefined while it may. */
export function findFull({ steps, bytes }: RunSize): string | undefined {
  if (steps >= MAX_STEPS) {
    return `the run has ${steps} recorded steps, at most ${MAX_STEPS} are kept: ${FIX_OF_STEPS}`;
  }
  if (bytes >= MAX_BYTES) {
    return `the run has ${bytes} bytes of records, at most ${MAX_BYTES} are kept: ${FIX_OF_BYTES}`;
  }
  return undefined;
}

/** The bounds that a run has reached half of. */
export function findWarnings({ steps, bytes }: RunSize): readonly RunWarning[] {
  const warnings: RunWarning[] = [];
  if (steps >= MAX_STEPS * WARN_AT) {
    const message = `the run has ${steps} recorded steps and fails at ${MAX_STEPS}: ${FIX_OF_STEPS}`;
    warnings.push({ code: "many_steps", message });
  }
  if (bytes >= MAX_BYTES * WARN_AT) {
    const message = `the run has ${bytes} bytes of records and fails at ${MAX_BYTES}: ${FIX_OF_BYTES}`;
    warnings.push({ code: "many_bytes", message });
  }
  return warnings;
}

/** Bytes of one record under its name. */
export function bytesOf(step: string, record: unknown): number {
  return Buffer.byteLength(step) + Buffer.byteLength(JSON.stringify(record));
}
