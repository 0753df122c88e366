import type { MarkState } from "./run-journal-store.ts";
import type { RunStatus, StepRecord } from "./run-record.ts";

const ENDED: ReadonlySet<RunStatus> = new Set<RunStatus>(["failed", "cancelled"]);

/**
 * A retry drops the first failure and all that is recorded behind it, so these run again; what comes before it never does.
 * One that would go on from a run which was undone is refused.
 */
export function markStateOf(
  status: RunStatus | undefined,
  steps: ReadonlyMap<string, StepRecord>,
  step: string,
): MarkState {
  if (status === undefined || status === "done") return "settled";
  const isEnded = ENDED.has(status);
  const records = [...steps.values()];
  if (isEnded && records.some(({ kind }) => kind === "undo")) return "settled";
  const record = steps.get(step);
  const { seq = 0 } = record ?? {};
  const isKept =
    record !== undefined &&
    !records.some(({ error, seq: at = 0 }) => error !== undefined && at <= seq);
  if (isKept) return "settled";
  return isEnded ? "ended" : "live";
}
