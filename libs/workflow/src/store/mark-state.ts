import type { MarkState, StepMark } from "./run-journal-store.ts";
import type { RunStatus, StepRecord } from "./run-record.ts";

const ENDED: ReadonlySet<RunStatus> = new Set<RunStatus>(["failed", "cancelled"]);

/**
 * Returns whether a step may still read its mark. The undo of a step reads the mark of a creation until the run ends. A retry from the failed step drops the first failure and all later records,
 * so those steps run again; earlier ones never do. A run that was undone cannot be retried in this way.
 */
export function markStateOf(
  status: RunStatus | undefined,
  steps: ReadonlyMap<string, StepRecord>,
  { step, created }: Pick<StepMark, "step" | "created">,
): MarkState {
  if (status === undefined || status === "done") return "settled";
  const isEnded = ENDED.has(status);
  if (created && !isEnded) return "live";
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
