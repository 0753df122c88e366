import type { KubeCalls, ObjectManifest, ObjectRef, ObjectTarget } from "@konverge/kube";

export interface EvictOptions {
  /** Default: the pod's own. */
  readonly gracePeriodSeconds?: number;
}

/** The Kubernetes calls of a step's body. */
export interface StepVerbs extends KubeCalls<"step"> {
  /** Sets the number of replicas of a kind that has the subresource `scale`. */
  scale(target: ObjectTarget, replicas: number): Promise<ObjectRef>;
  /**
   * Starts a Job, with the rules of `create`; `w.waitFor(name, complete(ref))` waits for its end.
   * @throws KonvergeError `invalid_request` for `ttlSecondsAfterFinished`, which could delete it before its result is read
   */
  runJob(job: ObjectManifest): Promise<ObjectRef>;
  /**
   * Evicts a pod; succeeds if it is deleted or replaced already. While a disruption budget forbids the eviction, the step is
   * retried without counting attempts.
   */
  evict(pod: ObjectTarget, options?: EvictOptions): Promise<void>;
  /** Returns the verbs for another cluster of the configuration. */
  on(cluster: string): StepVerbs;
}
