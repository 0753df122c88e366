import { undoName } from "../define/undo-name.ts";
import type { UndoOptions } from "../journal/offered-undos.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import { mayHaveActed } from "../store/undos-left.ts";

/** A recorded step to undo. */
export interface Undo {
  readonly step: string;
  readonly result: unknown;
  readonly options: UndoOptions;
}

export type FoundUndos =
  /** All that is left to undo, the last recorded first. */
  | { readonly kind: "found"; readonly undos: readonly Undo[] }
  /** Steps to undo whose undo the code no longer has. */
  | { readonly kind: "missing"; readonly steps: readonly string[] };

/** Returns the steps to undo, which the journal decides: not how far the function of this execution came. */
export function findUndos(journal: RunJournal): FoundUndos {
  const left = [...journal.recorded].filter(
    ([step, record]) =>
      (record.hasUndo === true || journal.undos.has(step)) &&
      mayHaveActed(record) &&
      journal.get(undoName(step)) === undefined,
  );
  const missing = left.flatMap(([step]) => (journal.undos.has(step) ? [] : [step]));
  if (missing.length > 0) return { kind: "missing", steps: missing };
  const undos = left
    .toSorted(([, a], [, b]) => (b.seq ?? 0) - (a.seq ?? 0))
    .flatMap(([step, { value }]) => {
      const { options } = journal.undos.get(step) ?? {};
      return options === undefined ? [] : [{ step, result: value, options }];
    });
  return { kind: "found", undos };
}

/**
 * Records steps with an undo that have begun and have no record when the run fails: those between two tries, and those whose
 * worker was lost. They may have had an effect, and are undone.
 */
export async function recordUnknownOutcomes(journal: RunJournal): Promise<void> {
  const begun = new Set<string>();
  for (const [step, { hasUndo, mayHaveActed: acted }] of journal.begun) {
    if (acted === true && (hasUndo === true || journal.undos.has(step))) begun.add(step);
  }
  // A lost worker may have begun what the function calls before it receives a new record.
  for (const [step, { kind, isReplayed }] of journal.undos) {
    if (kind === "step" && isReplayed && journal.held.died) begun.add(step);
  }
  for (const { lost = [] } of journal.recorded.values()) {
    for (const step of lost) if (journal.undos.has(step)) begun.add(step);
  }
  for (const step of begun) {
    if (journal.get(step) !== undefined) continue;
    const attempts = Math.max(1, journal.progressOf(step)?.attempts ?? 0);
    const message = `the run failed before step "${step}" had an outcome; a try may have had an effect`;
    const error = { code: "outcome_unknown", message };
    await journal.commit(step, { kind: "step", error, attempts, hasUndo: true });
  }
}
