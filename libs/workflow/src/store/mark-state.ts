import type { MarkState, StepMark } from "./run-journal-store.ts";
import type { RunStatus, RunView, StepRecord } from "./run-record.ts";

const ENDED: ReadonlySet<RunStatus> = new Set<RunStatus>(["failed", "cancelled"]);

/** Returns true if the mark is of this run, not of an earlier round or of another run with its id. */
export function isOfRound(
  mark: Pick<StepMark, "createdAtMs" | "round">,
  run: Pick<RunView, "createdAtMs" | "round">,
): boolean {
  return mark.createdAtMs === run.createdAtMs && mark.round === run.round;
}

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
