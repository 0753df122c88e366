import type { AnyWorkflow } from "../define/define-workflow.ts";
import { fitsRun } from "../store/code-version.ts";
import type { Held } from "../store/run-journal-store.ts";

/** Returns why this code may not continue the run, with the fix; undefined if it may. */
export function findMisfit(
  workflow: AnyWorkflow,
  { run, continuedBy }: Pick<Held, "run" | "continuedBy">,
): string | undefined {
  const { name, version } = workflow;
  const started = run.version;
  if (fitsRun(workflow, { version: started, continuedBy })) return undefined;
  if (continuedBy !== undefined && version < continuedBy) {
    return `version ${continuedBy} of "${name}" has recorded steps of the run, this worker has version ${version}: update this worker, or deploy a newer version that accepts ${started}`;
  }
  const fix =
    started > version
      ? "a worker with newer code will continue it; update this worker"
      : `add ${started} to accepts if the code can finish such runs, or keep a worker with version ${started} until they have ended`;
  return `the run was started by version ${started} of "${name}", this worker has version ${version}: ${fix}`;
}
