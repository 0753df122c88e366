import { isKonvergeError, KonvergeError } from "@konverge/core";
import type { MapOptions } from "../define/define-workflow.ts";

/**
 * Calls a function for each item, at most `concurrency` at once. The order of calls depends only on the order in which verbs
 * return, which is the same in every execution.
 * @throws KonvergeError `invalid_workflow` for invalid options; the first failure that is not tolerated, when all calls that had
 * begun have ended
 */
export async function mapItems<T, R>(
  items: readonly T[],
  call: (item: T, index: number) => Promise<R>,
  { concurrency = 10, toleratedFailures = 0 }: MapOptions = {},
): Promise<PromiseSettledResult<R>[]> {
  assertNumber("concurrency", concurrency, 1);
  assertNumber("toleratedFailures", toleratedFailures, 0);
  const outcomes: PromiseSettledResult<R>[] = [];
  const left = items.entries();
  let failures = 0;
  let stop: { readonly error: unknown } | undefined;
  const fail = (index: number, error: unknown) => {
    outcomes[index] = { status: "rejected", reason: error };
    failures += 1;
    if (failures > toleratedFailures || !isFailure(error)) stop ??= { error };
  };
  const work = async (): Promise<void> => {
    for (const [index, item] of left) {
      if (stop !== undefined) return;
      try {
        outcomes[index] = { status: "fulfilled", value: await call(item, index) };
      } catch (error) {
        fail(index, error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, work));
  if (stop !== undefined) throw stop.error;
  return outcomes;
}

/** Returns true for a failed step or child and a `TerminalError`. Other errors are mistakes in the code, or the cancellation. */
function isFailure(error: unknown): boolean {
  return isKonvergeError(error) && (error.code === "step_failed" || isFinal(error));
}

function isFinal({ terminal, code }: KonvergeError): boolean {
  return terminal && code !== "cancelled" && code !== "invalid_workflow";
}

function assertNumber(name: string, value: number, least: number): void {
  if (value === Infinity || (Number.isSafeInteger(value) && value >= least)) return;
  const message = `${name} of w.map must be an integer >= ${least} or Infinity (got ${value})`;
  throw new KonvergeError("invalid_workflow", message);
}
