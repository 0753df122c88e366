import { compareResourceVersions, type ApiObject, type ResourceType } from "@konverge/core";

/** Where watched objects are kept. A reflector of libs/kube is one. */
export interface ObjectStore {
  /** Resolves once the first list is in. */
  readonly synced: Promise<void>;
  /** The version up to which the store has seen everything. */
  readonly lastVersion: string | undefined;
  list(): readonly ApiObject[];
}

/** Cached reads of a worker, never older than the worker's own writes. */
export interface ObjectCache {
  /** Undefined when the type is not watched by this worker. */
  list<T extends ApiObject>(
    type: ResourceType<T>,
    namespace: string | undefined,
  ): Promise<T[] | undefined>;
  noteWrite(type: ResourceType, object: ApiObject): void;
  noteDelete(type: ResourceType, object: ApiObject): void;
}

interface OwnWrite {
  readonly object: ApiObject;
  readonly deleted: boolean;
}

/**
 * Lays this worker's own writes over what its watches have delivered so far, as client-go's MutationCache does: a
 * handler that just created a child must not create it again because the watch is a few milliseconds behind.
 */
export function createObjectCache(stores: ReadonlyMap<string, ObjectStore>): ObjectCache {
  const ownWrites = new Map<string, Map<string, OwnWrite>>();

  const note = (type: ResourceType, object: ApiObject, deleted: boolean) => {
    const id = typeId(type);
    const uid = object.metadata.uid;
    if (!stores.has(id) || uid === undefined) return;
    const writes = ownWrites.get(id) ?? new Map<string, OwnWrite>();
    writes.set(uid, { object, deleted });
    ownWrites.set(id, writes);
  };

  return {
    async list<T extends ApiObject>(type: ResourceType<T>, namespace: string | undefined) {
      const store = stores.get(typeId(type));
      if (store === undefined) return undefined;
      await store.synced;
      const objects = new Map<string, ApiObject>();
      for (const object of store.list()) objects.set(object.metadata.uid ?? "", object);
      const writes = ownWrites.get(typeId(type));
      for (const [uid, write] of writes ?? []) {
        if (isSeen(write, objects.get(uid), store.lastVersion)) writes?.delete(uid);
        else if (write.deleted) objects.delete(uid);
        else objects.set(uid, write.object);
      }
      const found = [...objects.values()].filter(
        ({ metadata }) => namespace === undefined || metadata.namespace === namespace,
      );
      return found as T[];
    },
    noteWrite: (type, object) => note(type, object, false),
    noteDelete: (type, object) => {
      // With finalizers it stays visible until they are done; the watch will tell.
      if ((object.metadata.finalizers ?? []).length === 0) note(type, object, true);
    },
  };
}

/** Names a type by group and resource: all versions are one set of objects. */
export function typeId({ group, resource }: Pick<ResourceType, "group" | "resource">): string {
  return `${resource}.${group}`;
}

function isSeen(
  write: OwnWrite,
  stored: ApiObject | undefined,
  storeVersion: string | undefined,
): boolean {
  if (write.deleted) return stored === undefined;
  const written = write.object.metadata.resourceVersion ?? "";
  return (compareResourceVersions(storeVersion ?? "", written) ?? 0) >= 0;
}
