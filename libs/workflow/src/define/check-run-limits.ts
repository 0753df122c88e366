import { KonvergeError, MAX_RUN_LIMITS, type ErrorIssue, type RunLimits } from "@konverge/core";

/** Returns the limits that are not valid. */
export function findLimitIssues(limits: RunLimits): ErrorIssue[] {
  return (["steps", "bytes"] as const).flatMap((what) => {
    const { [what]: limit } = limits;
    const max = MAX_RUN_LIMITS[what];
    if (limit === undefined || (Number.isSafeInteger(limit) && limit >= 1 && limit <= max))
      return [];
    const detail = `limits.${what} must be an integer from 1 to ${max} (got ${limit})`;
    return [{ pointer: `/limits/${what}`, detail }];
  });
}

/** @throws KonvergeError `invalid_request` unless there is a valid limit */
export function checkRunLimits(limits: RunLimits): void {
  const issues = findLimitIssues(limits);
  if (limits.steps === undefined && limits.bytes === undefined) {
    issues.push({ pointer: "/limits", detail: "pass steps, bytes or both" });
  }
  const [first] = issues;
  if (first !== undefined) throw new KonvergeError("invalid_request", first.detail, { issues });
}
