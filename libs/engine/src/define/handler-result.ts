import { KonvergeError, type Outcome } from "@konverge/core";

/** Longer waits are mistakes, because the resync comes long before. */
const MAX_REQUEUE_MS = 366 * 86_400_000;

const FIX = 'return nothing, requeueAfter("30s") or awaitChange() of the context';

/** Returns the outcome for a handler's return value. An invalid value is an error with a suggested fix, and the key runs again. */
export function toOutcome(returned: unknown): Outcome {
  if (returned === undefined || returned === null) return { kind: "done" };
  try {
    return readResult(returned) ?? invalid(describe(returned));
  } catch {
    return invalid("an unreadable object");
  }
}

function readResult(returned: unknown): Outcome | undefined {
  if (typeof returned !== "object" || returned === null || !("kind" in returned)) return undefined;
  if (returned.kind === "awaitChange") return { kind: "awaitChange" };
  if (returned.kind !== "requeueAfter" || !("afterMs" in returned)) return undefined;
  const { afterMs } = returned;
  if (typeof afterMs === "number" && afterMs >= 0 && afterMs <= MAX_REQUEUE_MS) {
    return { kind: "requeueAfter", afterMs };
  }
  return invalid(`requeueAfter with ${String(afterMs)} ms, which is not between 0 and 366 days`);
}

function invalid(what: string): Outcome {
  const error = new KonvergeError("invalid_result", `the handler returned ${what}; ${FIX}`);
  return { kind: "retry", error };
}

/** Describes the type and the members, never the values (P12). */
function describe(returned: unknown): string {
  if (typeof returned !== "object" || returned === null) return `a ${typeof returned}`;
  if (Array.isArray(returned)) return "a list";
  const members = Object.keys(returned).slice(0, 5).join(", ");
  return members === "" ? "an object without members" : `an object with the members ${members}`;
}
