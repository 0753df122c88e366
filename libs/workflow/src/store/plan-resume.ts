import type { RunRef } from "../define/run-ref.ts";
import type { StepRecord } from "./run-record.ts";

/** From where a run that failed can go on. */
export type ResumePlan =
  /** From nowhere: this step was undone, so what the journal says is not so any more. */
  | { readonly kind: "undone"; readonly step: string }
  | {
      readonly kind: "resume";
      /** Records to drop: the one that failed and all behind it. */
      readonly drop: readonly string[];
      /** How many are kept. */
      readonly kept: number;
      /** Those of them that are runs which failed, and must go on first. */
      readonly children: readonly RunRef[];
    };

/** Behind the name of a signal's wait: an entry that tells why a signal was refused. */
const REFUSED = /![^!]*$/;

/**
 * What is kept is the journal up to the first failure, in the order of recording: a state in which the run once was. What
 * came later may be the function's answer to the failure, and would be skipped when it is met again. A wait that ended by
 * its time is a failure only when nothing else is: functions use it as an answer.
 */
export function planResume(steps: ReadonlyMap<string, StepRecord>): ResumePlan {
  const journal = [...steps].toSorted(([, a], [, b]) => (a.seq ?? 0) - (b.seq ?? 0));
  const undone = journal.find(([, { kind }]) => kind === "undo");
  if (undone !== undefined) return { kind: "undone", step: undone[0].slice("undo:".length) };
  const isTimeout = ([, { error }]: (typeof journal)[number]) => error?.code === "wait_timeout";
  const failure = journal.findIndex((entry) => isFailure(...entry) && !isTimeout(entry));
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

function isFailure(name: string, { kind, error }: StepRecord): boolean {
  if (error === undefined) return false;
  return !(kind === "signal" && error.code === "invalid_request" && REFUSED.test(name));
}
