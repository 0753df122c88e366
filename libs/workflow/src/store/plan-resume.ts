import { undoneStep } from "../define/undo-name.ts";
import type { RunRef } from "../define/run-ref.ts";
import { RACE_LOST, type StepRecord } from "./run-record.ts";

/** The place from which a failed run can resume. */
export type ResumePlan =
  /** The run cannot resume: this step was undone, so the journal is outdated. */
  | { readonly kind: "undone"; readonly step: string }
  | {
      readonly kind: "resume";
      /** Records to drop: the failed one and all later ones. */
      readonly drop: readonly string[];
      /** Number of records to keep. */
      readonly kept: number;
      /** Failed child runs among the dropped records, which must resume first. */
      readonly children: readonly RunRef[];
    };

/**
 * Keeps the journal up to the first failure, in the order of recording: a state that the run once had. Later records may be the
 * function's reaction to the failure, and would be skipped on replay. A wait that timed out counts as a failure only if there
 * is no other, because functions use timeouts as results.
 */
export function planResume(steps: ReadonlyMap<string, StepRecord>): ResumePlan {
  const journal = [...steps].toSorted(([, a], [, b]) => (a.seq ?? 0) - (b.seq ?? 0));
  const undone = journal.map(([name]) => undoneStep(name)).find((step) => step !== undefined);
  if (undone !== undefined) return { kind: "undone", step: undone };
  const isTimeout = ([, { error }]: (typeof journal)[number]) => error?.code === "wait_timeout";
  const isFailure = ([, { error }]: (typeof journal)[number]) =>
    error !== undefined && error.code !== RACE_LOST;
  const failure = journal.findIndex((entry) => isFailure(entry) && !isTimeout(entry));
  const cut = failure === -1 ? journal.findLastIndex(isTimeout) : failure;
  const dropped = cut === -1 ? [] : journal.slice(cut);
  return {
    kind: "resume",
    drop: dropped.map(([name]) => name),
    kept: journal.length - dropped.length,
    children: dropped.flatMap(([, { child, error }]) =>
      child === undefined || error === undefined ? [] : [child],
    ),
  };
}
