import type { ApiObject } from "@konverge/core";
import type { ObjectSelection } from "@konverge/kube";

/** A store of watched objects, such as a reflector of libs/kube. */
export interface ObjectStore {
  /** Resolves after the first list. */
  readonly synced: Promise<void>;
  /** The version up to which the store is complete. */
  readonly lastVersion: string | undefined;
  /** Default: all objects. Returns a new array. */
  list(selection?: ObjectSelection): readonly ApiObject[];
  get(namespace: string | undefined, name: string): ApiObject | undefined;
}

/** Stores by the id of their kind. */
export interface ObjectStores {
  /** May start a store. */
  get(id: string): ObjectStore | undefined;
  has(id: string): boolean;
}
