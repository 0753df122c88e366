import type { Gate, GateCall, Permit } from "@konverge/core";
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
    try {
      const either =
        signal === undefined ? raised.signal : AbortSignal.any([signal, raised.signal]);
      return await gate.admit({ ...call, priority }, { signal: either });
    } catch (error) {
      if (error !== raised) throw error;
    } finally {
      stop();
    }
  }
}
