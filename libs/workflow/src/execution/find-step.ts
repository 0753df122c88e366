import { sleepMs } from "@konverge/core";
import type { AnyWorkflow } from "../define/define-workflow.ts";
import type { ExecutionScope } from "../journal/execution-scope.ts";
import type { RunJournal } from "../journal/run-journal.ts";
import { createContext, type CalledStep } from "./create-context.ts";
import { OpenChildren } from "./open-children.ts";
import { NO_CHILDREN } from "./replay-history.ts";
import { parseInput } from "./run-execution.ts";

export interface FindOptions {
  readonly workflow: AnyWorkflow;
  /** Its verbs begin no work. */
  readonly scope: ExecutionScope;
  readonly journal: RunJournal;
  readonly step: string;
  /** Longest time in which the function awaits anything other than a verb, in ms. */
  readonly timeoutMs: number;
}

/**
 * Replays the function until it has received all records and has called the step. Returns undefined if it does not call it.
 * @throws the reason of the journal's `stopped`
 */
export async function findStep({
  workflow,
  scope,
  journal,
  step,
  timeoutMs,
}: FindOptions): Promise<CalledStep | undefined> {
  const { promise: found, resolve } = Promise.withResolvers<CalledStep | undefined>();
  const children = new OpenChildren(journal, NO_CHILDREN);
  const w = createContext({
    workflow,
    scope,
    journal,
    startChild: NO_CHILDREN,
    children,
    isStrict: false,
    onStep: (key, called) => {
      if (key === step) resolve(called);
    },
  });
  const { stopped } = journal;
  const stop = () => resolve(undefined);
  stopped.addEventListener("abort", stop, { once: true });
  const timeout = new AbortController();
  try {
    const input = parseInput(workflow, journal.held);
    workflow.run(w, input as never).then(stop, stop);
    void sleepMs(timeoutMs, timeout.signal).then(stop, stop);
    const called = await found;
    stopped.throwIfAborted();
    if (called !== undefined) await journal.order.rest();
    return called;
  } finally {
    timeout.abort();
    stopped.removeEventListener("abort", stop);
  }
}
