import type { ApiObject, ObjectMeta } from "@konverge/core";
import type { DeleteOptions } from "@konverge/kube";
import type { Seen } from "./json-value.ts";
import type { ObjectRef } from "./object-ref.ts";

/** An object that `get` returns: frozen, and rejected by the compiler as a step's result. Objects are not recorded (P12). */
export type ReadonlyObject<T> = DeepReadonly<T> & Seen;

type DeepReadonly<T> = T extends object
  ? { readonly [Field in keyof T]: DeepReadonly<T[Field]> }
  : T;

/** An object to write: plain JSON, or a typed kind. */
export type ObjectManifest = ObjectHead | (ObjectHead & { readonly [field: string]: unknown });

interface ObjectHead {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Readonly<Partial<ObjectMeta>>;
}

/** An existing object: a ref from another verb, a name, or a manifest. */
export type ObjectTarget = NamedTarget | ObjectManifest;

export interface NamedTarget extends Pick<ObjectRef, "apiVersion" | "kind" | "name"> {
  readonly namespace?: string;
  readonly cluster?: string;
  /** If set, another object with the same name is not changed. */
  readonly uid?: string;
  /** False in the ref of a step that only changed the object: an undo does not delete it. */
  readonly created?: boolean;
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
  /** If set, a deleted object is not created, and another one with its name is not changed. */
  readonly uid?: string;
  /** Takes over fields of other managers. Default false: the step fails and names the owners. */
  readonly force?: boolean;
}

export type StepDeleteOptions = Pick<DeleteOptions, "propagationPolicy" | "gracePeriodSeconds">;

export interface EvictOptions {
  /** Default: the pod's own. */
  readonly gracePeriodSeconds?: number;
}

/**
 * The Kubernetes calls of a step's body. Each verb may run again after a crash, and detects whether it has had its effect.
 * Before each write it checks in Redis that this worker still holds the run. The write has the precondition of an earlier
 * read, so a worker that was assumed to have died overwrites nothing of its successor.
 *
 * Version conflicts (409), 429, 5xx, missing responses and calls deferred by the guard do not count as attempts of the step.
 * A 403, a 422 and a kind that is not served fail it immediately.
 */
export interface StepVerbs {
  /** Reads an object, for computing only; undefined if it does not exist. */
  get<T extends ApiObject = ApiObject>(
    target: ObjectTarget,
  ): Promise<ReadonlyObject<T> | undefined>;
  /** Lists the current objects, for computing only. For thousands of objects use a controller's cache. */
  list<T extends ApiObject = ApiObject>(target: ListTarget): Promise<readonly ReadonlyObject<T>[]>;
  /**
   * Server-side apply as the field manager `konverge/<workflow>`. Pass all fields that the workflow wants, because fields that
   * only an earlier apply had are removed.
   * @throws KonvergeError `field_conflict` with the fields and their owners; `object_replaced` with a `uid`
   */
  apply(object: ObjectManifest, options?: StepApplyOptions): Promise<ObjectRef>;
  /**
   * Creates an object, unless an earlier attempt of this step has created it. With `generateName` the name is derived from the
   * run and the step.
   * @throws KonvergeError `object_exists` if another object has the name
   */
  create(object: ObjectManifest): Promise<ObjectRef>;
  /**
   * Changes an existing object once: the write adds an annotation, and a later attempt that finds it changes nothing. Increments
   * are therefore exact (P10). `change` may run several times and must depend only on the draft.
   * @throws KubeApiError 404 if the object does not exist; KonvergeError `object_replaced` if `target` has another uid
   */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller chooses the object's type
  mutate<T extends ApiObject = ApiObject>(
    target: ObjectTarget,
    change: (draft: T) => void | Promise<void>,
  ): Promise<ObjectRef>;
  /**
   * Deletes an object; succeeds if it is deleted or replaced already. Finalizers may take longer than the step. Pass the ref of
   * another verb, because by name a second attempt could delete a new object. An undo deletes only what its step created: by
   * name, only an object with the mark of that step; by ref, no object that the step only changed.
   */
  delete(target: ObjectTarget, options?: StepDeleteOptions): Promise<void>;
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
