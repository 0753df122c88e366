import { defined, KonvergeError } from "@konverge/core";
import { checkJson } from "../define/check-json.ts";
import type { RunRef } from "../define/run-ref.ts";
import type { RunActions } from "./run-actions.ts";
import { refusal } from "./run-refusal.ts";
import { describeFull } from "./signal-limits.ts";

interface SentSignal {
  readonly name: string;
  readonly id: string;
  readonly payload?: unknown;
  readonly by?: string | undefined;
}

/**
 * Stores a signal and wakes the run. `duplicate`: it has received a signal with this ID before.
 *
 * @throws KonvergeError `run_ended`, `not_found`, `signals_full` or as `checkJson`
 */
export async function sendSignal(
  store: Pick<RunActions, "signal">,
  wake: (ref: RunRef, reason: string) => Promise<void>,
  ref: RunRef,
  { name, id, payload, by }: SentSignal,
): Promise<"stored" | "duplicate"> {
  checkJson(payload, `the payload of signal "${name}"`);
  const stored = await store.signal(ref, { name, id, ...defined({ payload, by }) });
  switch (stored) {
    // The sender of a duplicate may have died before it requested the execution.
    case "stored":
    case "duplicate":
      await wake(ref, "signal");
      return stored;
    case "buffered":
      return "stored";
    case "full":
      throw new KonvergeError("signals_full", describeFull(ref));
    case "ended":
    case "missing":
      throw refusal(ref, stored);
  }
}
