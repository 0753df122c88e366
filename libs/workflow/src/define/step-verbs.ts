import type { ApiObject, ObjectMeta } from "@konverge/core";
import type { ObjectRef } from "./object-ref.ts";

declare const seen: unique symbol;

/** An object as `get` answers it: frozen, and refused by the compiler as a step's result. Objects are not recorded (P12). */
export type ReadonlyObject<T> = DeepReadonly<T> & { readonly [seen]: () => never };

type DeepReadonly<T> = T extends object
  ? { readonly [Field in keyof T]: DeepReadonly<T[Field]> }
  : T;

/** An object to be written: plain JSON, or of a kind with a type of its own. */
export type ObjectManifest = ObjectHead | (ObjectHead & { readonly [field: string]: unknown });

interface ObjectHead {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Partial<ObjectMeta>>;
}

/** An object that is there: as another verb answered it, by its names alone, or as it was written. */
export type ObjectTarget = NamedTarget | ObjectManifest;

export interface NamedTarget extends Pick<ObjectRef, "apiVersion" | "kind" | "name"> {
  readonly namespace?: string;
  readonly cluster?: string;
  /** Another object under the same name is not touched. */
  readonly uid?: string;
}

/** Objects of one kind. */
export interface ListTarget {
  readonly apiVersion: string;
  readonly kind: string;
  /** Default: all. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface StepApplyOptions {
  /** The object must be this one: it is not created when it is gone, nor is a successor of its name touched. */
  readonly uid?: string;
  /** Take fields that other managers own. Default false: the step fails, and says who owns which. */
  readonly force?: boolean;
}

export interface StepDeleteOptions {
  /** Default: the server's for the kind. */
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan";
  readonly gracePeriodSeconds?: number;
}

export interface EvictOptions {
  /** Default: the pod's own. */
  readonly gracePeriodSeconds?: number;
}

/**
 * What the body of a step does with Kubernetes objects. Each verb may run again after a crash, and knows then whether it has
 * had its effect. Before each write it looks in Redis whether the run is still this worker's, and it writes only onto what it
 * had read before that look, so that a worker which was taken for dead changes nothing that its successor has written.
 *
 * A 409 of a version, a 429, a 5xx, no answer and a call held back by the guard cost the step none of its tries. A 403, a 422
 * and a kind that is not served end it at once.
 */
export interface StepVerbs {
  /** The object, for computing only; undefined when it is not there. */
  get<T extends ApiObject = ApiObject>(
    target: ObjectTarget,
  ): Promise<ReadonlyObject<T> | undefined>;
  /** The objects as they are now, for computing only. Thousands of them belong into a controller's cache, not here. */
  list<T extends ApiObject = ApiObject>(target: ListTarget): Promise<readonly ReadonlyObject<T>[]>;
  /**
   * Server-side apply, as the field manager `konverge/<workflow>`: what all steps of the workflow want of this object, for
   * fields that an earlier apply had and this one has not are removed.
   * @throws KonvergeError `field_conflict` naming the fields and who owns them; `object_replaced` with a `uid`
   */
  apply(object: ObjectManifest, options?: StepApplyOptions): Promise<ObjectRef>;
  /**
   * Creates an object that must not be there yet, unless an earlier try of this step has created it. With `generateName` the
   * name is made of the run and the step.
   * @throws KonvergeError `object_exists` when it is another one
   */
  create(object: ObjectManifest): Promise<ObjectRef>;
  /**
   * Changes what is there, once: the write carries an annotation that says so, and whoever finds it does not change again.
   * So increments count exactly (P10). `change` may run several times and must depend on nothing but the draft.
   * @throws KubeApiError 404 when it is not there; KonvergeError `object_replaced` when `target` has another uid
   */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller says what the object is
  mutate<T extends ApiObject = ApiObject>(
    target: ObjectTarget,
    change: (draft: T) => void | Promise<void>,
  ): Promise<ObjectRef>;
  /**
   * Deletes; what is gone, or has a successor, is done. The finalizers may take longer than the step. Give what another verb
   * answered: by names alone a second try could meet a new object.
   */
  delete(target: ObjectTarget, options?: StepDeleteOptions): Promise<void>;
  /** Sets the number of replicas of a kind that has the subresource `scale`. */
  scale(target: ObjectTarget, replicas: number): Promise<ObjectRef>;
  /**
   * Starts a Job, by the rule of `create`; `w.waitFor(name, complete(ref))` waits for its end.
   * @throws KonvergeError `invalid_request` with `ttlSecondsAfterFinished`, which could delete it before it was looked at
   */
  runJob(job: ObjectManifest): Promise<ObjectRef>;
  /**
   * Evicts a pod; one that is gone, or has a successor, is done. While a disruption budget forbids it the step tries again,
   * which costs none of its tries.
   */
  evict(pod: ObjectTarget, options?: EvictOptions): Promise<void>;
  /** The same verbs on another cluster of the configuration. */
  on(cluster: string): StepVerbs;
}
