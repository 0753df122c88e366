import { KonvergeError } from "@konverge/core";
import type { ObjectManifest } from "@konverge/kube";

/**
 * Checks that an object is a Job which still exists when its result is read.
 * @throws KonvergeError `invalid_request`
 */
export function assertJob(object: ObjectManifest): void {
  const { apiVersion, kind } = object;
  if (apiVersion !== "batch/v1" || kind !== "Job") {
    throw invalid("/kind", `must be Job of batch/v1 (got ${kind} of ${apiVersion})`);
  }
  const spec = "spec" in object ? object["spec"] : undefined;
  const isExpiring =
    typeof spec === "object" &&
    spec !== null &&
    "ttlSecondsAfterFinished" in spec &&
    spec.ttlSecondsAfterFinished !== undefined;
  if (!isExpiring) return;
  throw invalid(
    "/spec/ttlSecondsAfterFinished",
    "may delete the Job before the run has read its result; remove it, and delete the Job in a later step",
  );
}

function invalid(pointer: string, detail: string): KonvergeError {
  return new KonvergeError("invalid_request", `the Job's ${pointer.slice(1)} ${detail}`, {
    issues: [{ pointer, detail }],
  });
}
