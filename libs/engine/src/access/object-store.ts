import type { ApiObject, ResourceType } from "@konverge/core";
import type { IndexFunction, ObjectSelection } from "@konverge/kube";

/** The objects that a watch has. */
export interface StoreScope {
  readonly type: ResourceType;
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
  /** Label selector. */
  readonly labels: string | undefined;
  /** Field selector. */
  readonly fields: string | undefined;
}

/** Watched objects, such as those of a reflector of libs/kube. */
export interface WatchedObjects {
  /** Resolves after the first list. */
  readonly synced: Promise<void>;
  /** The version up to which they are complete. */
  readonly lastVersion: string | undefined;
  /** Default: all objects. Returns a new array. */
  list(selection?: ObjectSelection): readonly ApiObject[];
  get(namespace: string | undefined, name: string): ApiObject | undefined;
}

/** The objects of one watch. */
export interface ObjectStore extends WatchedObjects {
  readonly scope: StoreScope;
  /** Resolves if the API server forbids the watch before the first list, or if its namespace leaves the scope. */
  readonly unavailable?: Promise<void>;
  /** Indexes by functions of users. */
  readonly indexes?: readonly IndexFunction[];
}

/** The stores of a process. */
export interface ObjectStores {
  /**
   * The first store of the kind with all objects of the namespace, or of all namespaces, whose scope is accepted. Starts its
   * watch.
   */
  find(
    type: ResourceType,
    namespace: string | undefined,
    accepts: (scope: StoreScope) => boolean,
  ): ObjectStore | undefined;
  /** The stores of the kind that may have objects of the namespace and whose watches were started. */
  started(type: ResourceType, namespace: string | undefined): readonly ObjectStore[];
}
