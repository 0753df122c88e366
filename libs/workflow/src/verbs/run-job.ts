import { KonvergeError } from "@konverge/core";
import type { ObjectManifest } from "../define/step-verbs.ts";

/**
 * What may be run as a Job: one that is still there when its result is looked for.
 * @throws KonvergeError `invalid_request`
 */
export function assertJob(object: ObjectManifest): void {
  const { apiVersion, kind } = object;
  if (apiVersion !== "batch/v1" || kind !== "Job") {
    throw invalid("/kind", `is ${apiVersion} ${kind}; runJob takes a Job of batch/v1`);
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
    "would delete the Job, perhaps before the run has seen how it ended; leave it out, and delete the Job in a later step",
  );
}

function invalid(pointer: string, detail: string): KonvergeError {
  return new KonvergeError("invalid_request", `the Job's ${pointer.slice(1)} ${detail}`, {
    issues: [{ pointer, detail }],
  });
}
