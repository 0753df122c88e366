import { linkAbort, type Gate, type GateCall, type Permit } from "@konverge/core";
import type { Urgency } from "../contract/urgency.ts";

/** Waits for a permit. When the priority of the work rises, the call waits on with the higher one. */
export async function admitUrgently(
  gate: Gate,
  call: GateCall,
  { urgency, signal }: { readonly urgency: Urgency; readonly signal: AbortSignal | undefined },
): Promise<Permit> {
  for (;;) {
    const priority = urgency.of(call.priority);
    const raised = new AbortController();
    const stop = urgency.onRaise(() => {
      if (urgency.of(call.priority) !== priority) raised.abort(raised);
    });
    const unlink = signal === undefined ? undefined : linkAbort(raised, signal);
    try {
      return await gate.admit({ ...call, priority }, { signal: raised.signal });
    } catch (error) {
      if (error !== raised) throw error;
    } finally {
      stop();
      unlink?.();
    }
  }
}
