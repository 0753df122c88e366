import { defined, formatKey } from "@konverge/core";
import { checkInput, checkLabels } from "./check-input.ts";
import { checkRunId, type RunRef } from "./define/run-ref.ts";
import type { RunActions } from "./store/run-actions.ts";
import { assertSameInput } from "./store/same-input.ts";
import { startRun, type Wake } from "./store/start-run.ts";
import type { StartedRun, StartedWorkflow, StartOptions } from "./workflows.ts";

export interface RunRequester {
  readonly store: RunActions;
  readonly wake: Wake;
  /** Decodes the input if its sender has encoded it. */
  readonly plainInput: (ref: RunRef) => Promise<unknown>;
}

/** Checks a start and starts the run. @throws KonvergeError as `Workflows.start` */
export async function requestRun<I>(
  { store, wake, plainInput }: RunRequester,
  workflow: StartedWorkflow<I>,
  { input, ...options }: StartOptions & { readonly input: I },
): Promise<StartedRun> {
  const { id = crypto.randomUUID(), key, onExisting, by, origin, labels } = options;
  checkRunId(id);
  if (key !== undefined) checkRunId(key);
  checkInput(workflow, input);
  if (labels !== undefined) checkLabels(labels);
  const { name, version } = workflow;
  const notify = options.notify === undefined ? undefined : formatKey(options.notify);
  const started = await startRun(store, wake, {
    workflow: name,
    id,
    version,
    input,
    ...defined({ key, onExisting, by, origin, notify, labels }),
  });
  if (!("status" in started)) return started;
  assertSameInput(started, await plainInput({ workflow: name, id }));
  return { id, created: false, createdAtMs: started.createdAtMs };
}
