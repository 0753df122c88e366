import { defined, ensureError } from "@konverge/core";
import type { Interrupt } from "../journal/execution-scope.ts";
import { undoName } from "../define/undo-name.ts";
import type { Undo } from "./find-undos.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import { runStep, UndoFailedError } from "./run-step.ts";

/** Undoes steps in the given order, each as its own step. Returns undefined when all are undone. */
export async function compensate(
  journal: RunJournal,
  undos: readonly Undo[],
): Promise<Exclude<Interrupt, { kind: "cancelled" | "continued" }> | undefined> {
  for (const { step, result, options } of undos) {
    const key = undoName(step);
    journal.begin(key);
    const undo = options.undo as ((...args: unknown[]) => unknown) | undefined;
    try {
      const body = async (context: unknown): Promise<void> => void (await undo?.(result, context));
      const advanced = await runStep(journal, key, "undo", body, options);
      if ("waitUntilMs" in advanced) {
        const { waitUntilMs } = advanced;
        return { kind: "waiting", ...defined({ untilMs: waitUntilMs }) };
      }
    } catch (thrown) {
      const error = ensureError(thrown);
      if (!(error instanceof UndoFailedError)) return journal.interruptOf(error);
      // The next execution counts its attempts from 0.
      await journal.note(key, { attempts: 0, delayMs: journal.recheckMs });
      return {
        kind: "blocked",
        reason: `step "${step}" could not be undone: ${error.message}; retried every ${journal.recheckMs / 1_000} s`,
        quotesError: true,
      };
    }
  }
  return undefined;
}
