import { isKonvergeError, KonvergeError, type Outcome } from "@konverge/core";
import type { PlanRecord } from "@konverge/records";

/** Returns the outcome of an attempt whose plan is incomplete, and that makes no changes therefore. */
export function incompleteOutcome(outcome: Outcome, { gaps }: Pick<PlanRecord, "gaps">): Outcome {
  if ("error" in outcome && outcome.error !== undefined && !isNotPlannable(outcome.error)) {
    return outcome;
  }
  if (outcome.kind === "deferred" || outcome.kind === "cancelled") return outcome;
  const [first] = gaps;
  const reason = first === undefined ? "" : `: ${first.about}: ${first.reason}`;
  const detail = `the attempt cannot be planned, so it makes no changes${reason}`;
  return { kind: "rejected", error: new KonvergeError("not_plannable", detail) };
}

function isNotPlannable(error: Error): boolean {
  return isKonvergeError(error) && error.code === "not_plannable";
}
