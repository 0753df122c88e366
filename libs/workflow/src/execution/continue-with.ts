import { checkJson } from "../define/check-json.ts";
import type { AnyWorkflow } from "../define/define-workflow.ts";
import { jsonCopy } from "../define/json-value.ts";
import { parseWith } from "../define/parse-with.ts";
import type { Advance } from "./advance.ts";
import { valueOf, type VerbReplay } from "./verb-replay.ts";

/** Name of the record of a cancellation that `w.continueWith` throws. */
const NAME = "continueWith";

/**
 * Ends this round of the run, as a return does, and never returns. A pending cancellation is thrown instead, so that the steps of
 * this round are undone.
 */
export async function continueWith(
  replay: VerbReplay,
  workflow: Pick<AnyWorkflow, "name" | "input">,
  input: unknown,
): Promise<never> {
  return await replay.exclusively(NAME, async (key) => {
    const what = `the next input of "${workflow.name}"`;
    checkJson(input, what);
    if (workflow.input !== undefined) parseWith(workflow.input, input, what);
    // A copy, because the function may change the object later.
    const next = jsonCopy(input);
    const end: Advance = { kind: "step" };
    const advance = async () => (await replay.journal.throwCancel(key, "step")) ?? end;
    valueOf(key, await replay.settle(key, "step", advance, { needsRoom: false }));
    return await replay.interrupt({ kind: "continued", input: next });
  });
}
