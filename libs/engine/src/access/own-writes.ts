import { compareResourceVersions, formatApiVersion, type ApiObject } from "@konverge/core";
import { IndexedObjects, partOf, type ObjectSelection } from "@konverge/kube";
import type { ObjectStore } from "./object-store.ts";

interface OwnWrite {
  readonly object: ApiObject;
  readonly deleted: boolean;
}

/** Own writes after which those delivered by the watch are dropped. */
const SWEPT_EVERY = 1_000;

/**
 * This worker's writes to the objects of one store which its watch has not delivered yet. They have the indexes of the store,
 * so that a list costs time in proportion to its result.
 */
export class OwnWrites {
  readonly #store: ObjectStore;
  readonly #writes = new Map<string, OwnWrite>();
  /** The uids of objects written in another version of the kind, which the store has in another form. */
  readonly #otherForm = new Set<string>();
  /** The written objects, without the deleted ones and those in another form. */
  readonly #written: IndexedObjects<ApiObject>;
  /** The version of the store at the last call. */
  #seenVersion: string | undefined;

  constructor(store: ObjectStore) {
    this.#store = store;
    this.#written = new IndexedObjects({ indexes: store.indexes ?? [] });
  }

  note(uid: string, write: OwnWrite): void {
    this.#followHistory();
    this.#forget(uid);
    const { type } = this.#store.scope;
    const isOtherForm = write.object.apiVersion !== formatApiVersion(type.group, type.version);
    if (write.deleted || isOtherForm) {
      this.#writes.set(uid, write);
      if (!write.deleted) this.#otherForm.add(uid);
    } else {
      const object = partOf(type, write.object);
      this.#writes.set(uid, { object, deleted: false });
      this.#written.set(object);
    }
    // Otherwise the writes of a kind that is never read would stay forever.
    if (this.#writes.size % SWEPT_EVERY === 0) this.#forgetSeen();
  }

  /**
   * The objects of the store with the writes, which may not match the label selector of the store. Undefined if there are
   * writes in another version of the kind, or writes of which only the API server knows whether they match the field selector
   * of the store.
   */
  list(selection: ObjectSelection): ApiObject[] | undefined {
    this.#followHistory();
    const { fields } = this.#store.scope;
    if (fields !== undefined || this.#otherForm.size > 0) {
      this.#forgetSeen();
      if ((fields === undefined ? this.#otherForm : this.#writes).size > 0) return undefined;
    }
    const found = this.#store.list(selection).filter((object) => !this.isBehind(object));
    for (const object of this.#written.list(selection)) {
      const uid = object.metadata.uid ?? "";
      if (this.#isSeen(uid)) this.#forget(uid);
      else found.push(object);
    }
    return found;
  }

  /** True if this worker has written the object since the version in the store. Forgets a write that the store has. */
  isBehind(stored: ApiObject): boolean {
    const uid = stored.metadata.uid ?? "";
    this.#followHistory();
    const write = this.#writes.get(uid);
    if (write === undefined) return false;
    if (!isSeen(write, stored, this.#store.lastVersion)) return true;
    this.#forget(uid);
    return false;
  }

  /** Forgets all writes if the version went back: etcd was restored, and its history may not have them. */
  #followHistory(): void {
    const { lastVersion } = this.#store;
    const order = compareResourceVersions(lastVersion ?? "", this.#seenVersion ?? "");
    this.#seenVersion = lastVersion;
    if (order === undefined || order >= 0) return;
    for (const uid of this.#writes.keys()) this.#forget(uid);
  }

  #isSeen(uid: string): boolean {
    const write = this.#writes.get(uid);
    if (write === undefined) return true;
    const { namespace, name } = write.object.metadata;
    const stored = this.#store.get(namespace, name);
    const own = stored?.metadata.uid === uid ? stored : undefined;
    return isSeen(write, own, this.#store.lastVersion);
  }

  #forget(uid: string): void {
    const write = this.#writes.get(uid);
    if (write === undefined) return;
    this.#writes.delete(uid);
    this.#otherForm.delete(uid);
    const { metadata } = write.object;
    // A successor of the same name stays.
    if (this.#written.get(metadata) === write.object) this.#written.delete(metadata);
  }

  #forgetSeen(): void {
    for (const uid of this.#writes.keys()) if (this.#isSeen(uid)) this.#forget(uid);
  }
}

function isSeen(
  write: OwnWrite,
  stored: ApiObject | undefined,
  storeVersion: string | undefined,
): boolean {
  if (write.deleted) return stored === undefined;
  const written = write.object.metadata.resourceVersion ?? "";
  // The object itself may arrive before the version of the whole store is updated.
  return [storeVersion, stored?.metadata.resourceVersion].some(
    (version) => (compareResourceVersions(version ?? "", written) ?? -1) >= 0,
  );
}
