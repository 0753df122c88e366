import { isEncoded, jsonEquals, KonvergeError, sameEncoded } from "@konverge/core";
import type { RunView } from "./run-record.ts";

/**
 * Checks that a repeated start has the first input of the existing run. Otherwise a caller would take the result of other work for
 * its own. Encoded inputs are compared by their fingerprints, because a codec may encode the same value in several ways. Without
 * comparable fingerprints they count as equal.
 * @throws KonvergeError `input_mismatch`
 */
export function assertSameInput(run: RunView, given: unknown): void {
  const { workflow, id, round, firstInput } = run;
  const input = round === undefined ? run.input : firstInput;
  const isSame = isEncoded(given)
    ? !isEncoded(input) || sameEncoded(input, given) !== false
    : jsonEquals(input, asStored(given));
  if (isSame) return;
  throw new KonvergeError(
    "input_mismatch",
    `run ${id} of "${workflow}" was started with a different input; pass an id that changes with the input, or the same input`,
  );
}

/** Returns the input as JSON, without undefined members. */
function asStored(input: unknown): unknown {
  return input === undefined ? undefined : (JSON.parse(JSON.stringify(input)) as unknown);
}
