import { defined, type RunLimits } from "@konverge/core";
import type { RunWarning } from "../store/run-record.ts";

/** The size of a run's journal, which each execution reads as a whole. */
export interface RunSize {
  readonly steps: number;
  /** Names and records as JSON. */
  readonly bytes: number;
}

/** The limits of a workflow without its own. */
export const DEFAULT_LIMITS: RunSize = { steps: 1_000, bytes: 4 * 1_024 * 1_024 };
/** Share of a limit at which a warning is given. */
const WARN_AT = 0.5;

const FIX_OF_STEPS =
  "increase limits.steps of the workflow, raise it for this run with konverge run raise, or move parts to child workflows";
const FIX_OF_BYTES =
  "increase limits.bytes of the workflow, raise it for this run with konverge run raise, return references instead of data, or move parts to child workflows";

/** Returns the higher one of each limit. */
export function higherOf(one: RunLimits, other: RunLimits): RunLimits {
  const higher = (what: keyof RunLimits) => {
    const limit = Math.max(one[what] ?? 0, other[what] ?? 0);
    return limit === 0 ? undefined : limit;
  };
  return defined({ steps: higher("steps"), bytes: higher("bytes") });
}

/** Returns why a run may have no further step; undefined if it may. */
export function findFull({ steps, bytes }: RunSize, limits: RunSize): string | undefined {
  if (steps >= limits.steps) {
    return `the run has ${steps} recorded steps, the limit is ${limits.steps}; ${FIX_OF_STEPS}`;
  }
  if (bytes >= limits.bytes) {
    return `the run has ${bytes} bytes of records, the limit is ${limits.bytes}; ${FIX_OF_BYTES}`;
  }
  return undefined;
}

/** Returns a warning for each limit that is half reached. */
export function findWarnings({ steps, bytes }: RunSize, limits: RunSize): readonly RunWarning[] {
  const warnings: RunWarning[] = [];
  if (steps >= limits.steps * WARN_AT) {
    const message = `the run has ${steps} recorded steps and is blocked at ${limits.steps}; ${FIX_OF_STEPS}`;
    warnings.push({ code: "many_steps", message });
  }
  if (bytes >= limits.bytes * WARN_AT) {
    const message = `the run has ${bytes} bytes of records and is blocked at ${limits.bytes}; ${FIX_OF_BYTES}`;
    warnings.push({ code: "many_bytes", message });
  }
  return warnings;
}

/** Returns the size of a record with its name. */
export function bytesOf(step: string, record: unknown): number {
  return Buffer.byteLength(step) + Buffer.byteLength(JSON.stringify(record));
}
