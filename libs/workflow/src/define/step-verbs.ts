import type { KubeCalls, ObjectManifest, ObjectRef } from "@konverge/kube";

/** The Kubernetes calls of a step's body. */
export interface StepVerbs extends KubeCalls<"step"> {
  /**
   * Starts a Job, with the rules of `create`; `w.waitFor(name, complete(ref))` waits for its end.
   * @throws KonvergeError `invalid_request` for `ttlSecondsAfterFinished`, which could delete it before its result is read
   */
  runJob(job: ObjectManifest): Promise<ObjectRef>;
  /** Returns the verbs for another cluster of the configuration. */
  on(cluster: string): StepVerbs;
}
