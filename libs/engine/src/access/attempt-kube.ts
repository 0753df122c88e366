import type { ApiObject, ResourceType } from "@konverge/core";
import type { MutateOptions, NamespacedName } from "@konverge/kube";
import type { ObjectDraft } from "./new-object.ts";
import type { ResourceTarget } from "./object-target.ts";

/** A draft whose status is there, if empty. */
export type StatusDraft<T> = T & {
  status: T extends { status?: infer Status } ? NonNullable<Status> : Record<string, unknown>;
};

/**
 * The API server as a handler sees it: every call is bound to the attempt, asks the gate, and is recorded. Reads give
 * frozen objects; the only way to change one is inside `mutate`.
 */
export interface AttemptKube {
  /** @throws KubeApiError; `isNotFound` tells that there is none. A name alone means the reconciled object's namespace. */
  get<T extends ApiObject>(type: ResourceType<T>, target: string | NamespacedName): Promise<T>;
  /** As `get`, but undefined when there is none. */
  find<T extends ApiObject>(
    type: ResourceType<T>,
    target: string | NamespacedName,
  ): Promise<T | undefined>;
  /**
   * Objects of a kind, in the reconciled object's namespace by default. A kind in the controller's `owns` comes from
   * this worker's cache, never older than this worker's own writes; others from the API server.
   */
  list<T extends ApiObject>(
    type: ResourceType<T>,
    options?: {
      readonly ownedBy?: ApiObject;
      readonly namespace?: string;
      readonly labelSelector?: string;
    },
  ): Promise<readonly T[]>;
  create<T extends ApiObject>(type: ResourceType<T>, object: ObjectDraft<T>): Promise<T>;
  /** Deletes exactly this object, not a successor of the same name. Gone already is fine. */
  delete(object: ApiObject): Promise<void>;
  /** Server-side apply under the field manager `konverge/<controller>`. */
  apply<T extends ApiObject>(
    type: ResourceType<T>,
    object: T,
    options?: { readonly force?: boolean },
  ): Promise<T>;
  /**
   * Update (PUT): the object becomes exactly this, fields of others included; so only for objects that are all ours. It
   * must come from a read: a write in between is a conflict, which ends the attempt, and the next one reads again.
   */
  replace<T extends ApiObject>(object: T): Promise<T>;
  /**
   * Read, change, write, as often as it takes: `change` gets a fresh draft each time and must depend on nothing decided
   * before. Nothing changed means no write. @throws KubeApiError `isConflict` when others kept winning.
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
