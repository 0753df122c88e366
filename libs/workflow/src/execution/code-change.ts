import type { Misfit } from "../journal/delivery-order.ts";
import type { RunWarning } from "../store/run-record.ts";

/** Most names in a message. */
const MAX_NAMES = 5;

/** Describes for users how the code has changed since it recorded the steps of a run. */
function describeChange({ missing, early }: Misfit): string {
  const names = missing.slice(0, MAX_NAMES).map((step) => `"${step}"`);
  const more = missing.length - names.length;
  const list = `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return missing.length > 0
    ? `the code has changed: it no longer calls ${list}, which the run has recorded`
    : `the code has changed: it calls "${early}" earlier than it was recorded`;
}

export function changeWarning(misfit: Misfit): RunWarning {
  const fix = "renamed steps run again; branch on w.version to keep the old steps for old runs";
  return { code: "code_changed", message: `${describeChange(misfit)}; ${fix}` };
}

/** Returns the reason for which a run of a strict workflow is blocked. */
export function changeReason(misfit: Misfit): string {
  return `${describeChange(misfit)}; restore the step, or branch on w.version; the run resumes when the code fits`;
}
