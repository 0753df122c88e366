import type { ApiObject, ResourceType } from "@konverge/core";
import type { DeleteOptions, MutateOptions, NamespacedName, NewObject } from "@konverge/kube";
import type { ObjectDraft } from "./new-object.ts";

/** Addresses an object by kind and name, without a copy of it. Default namespace: that of the reconciled object. */
export interface ResourceTarget<T extends ApiObject> extends NamespacedName {
  readonly type: ResourceType<T>;
}

/** A draft whose status exists, possibly empty. */
export type StatusDraft<T> = T & {
  status: T extends { status?: infer Status } ? NonNullable<Status> : Record<string, unknown>;
};

/**
 * The API server for a handler: each call is bound to the attempt, rate-limited and recorded. Reads return frozen
 * objects; only `mutate` changes one.
 */
export interface AttemptKube {
  /** A name alone means the reconciled object's namespace. @throws KubeApiError; `isNotFound` if the object does not exist */
  get<T extends ApiObject>(type: ResourceType<T>, target: string | NamespacedName): Promise<T>;
  /** As `get`, but returns undefined if the object does not exist. */
  find<T extends ApiObject>(
    type: ResourceType<T>,
    target: string | NamespacedName,
  ): Promise<T | undefined>;
  /**
   * Lists objects of a kind, by default in the reconciled object's namespace. Kinds in the controller's `owns` come from this
   * worker's cache, which includes this worker's own writes; other kinds come from the API server.
   */
  list<T extends ApiObject>(
    type: ResourceType<T>,
    options?: {
      readonly ownedBy?: ApiObject;
      readonly namespace?: string;
      readonly labelSelector?: string;
    },
  ): Promise<readonly T[]>;
  /**
   * Creates an object. `{ name, ownedBy, ... }` takes the namespace and a controller reference from `ownedBy`.
   * @throws KubeApiError `isAlreadyExists`
   */
  create<T extends ApiObject>(type: ResourceType<T>, object: ObjectDraft<T>): Promise<T>;
  /** Deletes exactly this object, not a successor of the same name. Succeeds if the object does not exist. */
  delete(
    object: ApiObject,
    options?: Pick<DeleteOptions, "propagationPolicy" | "gracePeriodSeconds">,
  ): Promise<void>;
  /**
   * Server-side apply with the field manager `konverge/<controller>`: creates the object, or sets its fields. Takes the same
   * draft as `create`, or a manifest with `metadata`. `force` takes over fields of other managers; it is the default for
   * objects that the reconciled object or `ownedBy` controls, so that a child gets its fields back.
   * @throws KonvergeError `field_conflict` with the fields, their owners and the fix
   */
  apply<T extends ApiObject>(
    type: ResourceType<T>,
    object: ObjectDraft<T> | NewObject<T> | T,
    options?: { readonly force?: boolean },
  ): Promise<T>;
  /**
   * Replaces the object (PUT), including fields of other writers; only for objects that the controller owns completely. The
   * object must come from a read. A write in between is a conflict: it ends the attempt, and the next attempt reads again.
   */
  replace<T extends ApiObject>(object: T): Promise<T>;
  /**
   * Reads, changes and writes the object, with retries on conflict. `change` receives a fresh draft each time and must not
   * depend on earlier decisions. Without a change, nothing is written. @throws KubeApiError `isConflict` after repeated conflicts
   */
  mutate<T extends ApiObject>(
    target: T | ResourceTarget<T>,
    change: (draft: T) => void | Promise<void>,
    options?: Pick<MutateOptions, "subresource" | "strategy">,
  ): Promise<T>;
  /** {@link AttemptKube.mutate} through the status subresource. */
  mutateStatus<T extends ApiObject>(
    target: T | ResourceTarget<T>,
    change: (draft: StatusDraft<T>) => void | Promise<void>,
    options?: Pick<MutateOptions, "strategy">,
  ): Promise<T>;
}
