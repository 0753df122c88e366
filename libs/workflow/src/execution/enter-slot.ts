import { ensureError } from "@konverge/core";
import type { AnyWorkflow } from "../define/define-workflow.ts";
import { findGroupIssue } from "../define/run-concurrency.ts";
import { cancellationOf, type Failure } from "../store/run-record.ts";
import type { Held, RunJournalStore } from "../store/run-journal-store.ts";

export type Entered =
  | { readonly kind: "entered" | "waiting" }
  | { readonly kind: "cancelled"; readonly error: Failure }
  | { readonly kind: "blocked"; readonly reason: string };

/**
 * Takes a slot of the workflow for a run without one. `waiting`: the run was left and waits for it. `cancelled`: the run was cancelled
 * before it has begun. `parse` returns the input.
 */
export async function enterSlot(
  store: Pick<RunJournalStore, "enter" | "news">,
  { concurrency }: Pick<AnyWorkflow, "concurrency">,
  held: Held,
  parse: () => unknown,
): Promise<Entered> {
  // The undos of a run need no slot.
  if (concurrency === undefined || held.hasSlot === true || held.failing !== undefined) {
    return { kind: "entered" };
  }
  const { runs: slots, key, label } = concurrency;
  let group: unknown = label === undefined ? "" : (held.run.labels?.[label] ?? "");
  if (key !== undefined) {
    let input: unknown;
    try {
      input = parse();
    } catch {
      // The execution fails or blocks the run with the reason, and calls no function.
      return { kind: "entered" };
    }
    try {
      group = key(input as never);
    } catch (thrown) {
      const { name, message } = ensureError(thrown);
      const reason = `concurrency.key threw ${name}: ${message}; deploy corrected code, then the run resumes`;
      return { kind: "blocked", reason };
    }
  }
  const issue = findGroupIssue(group);
  if (issue !== undefined) {
    return { kind: "blocked", reason: `${issue}; deploy corrected code, then the run resumes` };
  }
  const kind = await store.enter(held, { slots, group: group as string });
  if (kind !== "cancelled") return { kind };
  const { cancel = {} } = await store.news(held, { signals: [], children: [] });
  return { kind, error: cancellationOf(cancel) };
}
