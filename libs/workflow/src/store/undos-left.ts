import { undoName } from "../define/undo-name.ts";
import type { StepRecord } from "./run-record.ts";

/** Returns true if a step may have had an effect. */
export function mayHaveActed({ error, attempts = 0, noEffect = false }: StepRecord): boolean {
  return error === undefined || (attempts > 0 && !noEffect);
}

/**
 * Returns the recorded steps that have an undo which has not run, in the order in which it would run. A step whose body is
 * running, or that waits for its next try, has no record and is missing.
 */
export function undosLeft(
  steps: readonly (StepRecord & { readonly name: string })[],
): readonly string[] {
  const recorded = new Set(steps.map(({ name }) => name));
  return steps
    .filter((step) => step.hasUndo === true && mayHaveActed(step))
    .filter(({ name }) => !recorded.has(undoName(name)))
    .toSorted((a, b) => (b.seq ?? 0) - (a.seq ?? 0))
    .map(({ name }) => name);
}
