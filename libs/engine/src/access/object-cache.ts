import {
  compareResourceVersions,
  formatApiVersion,
  sleepMs,
  type ApiObject,
  type ResourceRef,
  type ResourceType,
} from "@konverge/core";
import type { NamespacedName } from "@konverge/kube";

/** Where watched objects are kept. A reflector of libs/kube is one. */
export interface ObjectStore {
  /** Resolves once the first list is in. */
  readonly synced: Promise<void>;
  /** The version up to which the store has seen everything. */
  readonly lastVersion: string | undefined;
  list(): readonly ApiObject[];
  get(namespace: string | undefined, name: string): ApiObject | undefined;
}

/** By the id of their kind. */
export interface ObjectStores {
  /** May start one. */
  get(id: string): ObjectStore | undefined;
  has(id: string): boolean;
}

/** Cached reads of a worker, never older than the worker's own writes. */
export interface ObjectCache {
  /**
   * Undefined when the type is not watched by this worker, or its watch does not come as far as `floor` within a second: then
   * only the API server can say.
   */
  list<T extends ApiObject>(
    type: ResourceType<T>,
    options: { readonly namespace: string | undefined; readonly floor: string | undefined },
  ): Promise<T[] | undefined>;
  /**
   * The object, if it is known here at version `floor` or later, and with all that this worker wrote. Undefined when only
   * the API server can say, and for a while after a write of the object lost a race: where others write all the time,
   * what a watch delivered is old already, and a write built on it costs a call instead of saving one.
   */
  find<T extends ApiObject>(
    type: ResourceType<T>,
    name: NamespacedName,
    floor: string,
  ): T | undefined;
  noteWrite(type: ResourceType, object: ApiObject): void;
  noteDelete(type: ResourceType, object: ApiObject): void;
  noteConflict(ref: ResourceRef): void;
}

/** How long a list waits for a watch that is behind what its attempt is about, in ms. */
const CATCH_UP_MS = 1_000;
/** How long an object is read from the API server after a conflict, in ms. */
const CONTESTED_MS = 5_000;
/** Objects remembered as contested; beyond that the oldest are forgotten. */
const CONTESTED_KEPT = 1_000;

/** Own writes of a kind after which those that the watch has delivered are forgotten. */
const SWEPT_EVERY = 1_000;

interface OwnWrite {
  readonly object: ApiObject;
  readonly deleted: boolean;
}

/**
 * Lays this worker's own writes over what its watches have delivered so far, as client-go's MutationCache does: a
 * handler that just created a child must not create it again because the watch is a few milliseconds behind.
 */
export function createObjectCache(
  stores: ObjectStores,
  clock: () => number = () => performance.now(),
): ObjectCache {
  const ownWrites = new Map<string, Map<string, OwnWrite>>();
  const contestedAtMs = new Map<string, number>();

  const note = (type: ResourceType, object: ApiObject, deleted: boolean) => {
    const id = typeId(type);
    const uid = object.metadata.uid;
    if (!stores.has(id) || uid === undefined) return;
    const writes = ownWrites.get(id) ?? new Map<string, OwnWrite>();
    writes.set(uid, { object, deleted });
    ownWrites.set(id, writes);
    // A kind that is written and never read here would be remembered for ever.
    if (writes.size % SWEPT_EVERY === 0) forgetSeen(writes, stores.get(id));
  };

  return {
    async list<T extends ApiObject>(
      type: ResourceType<T>,
      {
        namespace,
        floor,
      }: { readonly namespace: string | undefined; readonly floor: string | undefined },
    ) {
      const store = stores.get(typeId(type));
      if (store === undefined) return undefined;
      await store.synced;
      if (floor !== undefined && !(await hasCome(store, floor, clock))) return undefined;
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
    find<T extends ApiObject>(type: ResourceType<T>, name: NamespacedName, floor: string) {
      const id = typeId(type);
      // Not worth a watch: it saves one call, a list saves as many as there are pages.
      const store = stores.has(id) ? stores.get(id) : undefined;
      const object = store?.get(name.namespace, name.name);
      if (store === undefined || object === undefined) return undefined;
      // One watch a resource: its objects have the version that the watch asks for.
      if (object.apiVersion !== formatApiVersion(type.group, type.version)) return undefined;
      const order = compareResourceVersions(object.metadata.resourceVersion ?? "", floor);
      if (order === undefined || order < 0) return undefined;
      if (clock() - (contestedAtMs.get(objectId(type, name)) ?? -Infinity) < CONTESTED_MS) {
        return undefined;
      }
      const uid = object.metadata.uid ?? "";
      const write = ownWrites.get(typeId(type))?.get(uid);
      if (write !== undefined && !isSeen(write, object, store.lastVersion)) return undefined;
      ownWrites.get(typeId(type))?.delete(uid);
      return object as T;
    },
    noteConflict(ref) {
      const id = objectId(ref, ref);
      contestedAtMs.delete(id);
      contestedAtMs.set(id, clock());
      const [oldest] = contestedAtMs.keys();
      if (contestedAtMs.size > CONTESTED_KEPT && oldest !== undefined) contestedAtMs.delete(oldest);
    },
    noteWrite: (type, object) => note(type, object, false),
    noteDelete: (type, object) => {
      // With finalizers it stays visible until they are done; the watch will tell.
      if ((object.metadata.finalizers ?? []).length === 0) note(type, object, true);
    },
  };
}

/** Waits for a watch that is a little behind. The first looks come soon: most often it is a matter of a millisecond. */
async function hasCome(store: ObjectStore, floor: string, clock: () => number): Promise<boolean> {
  const untilMs = clock() + CATCH_UP_MS;
  for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, 50)) {
    // What does not compare cannot be waited for.
    if ((compareResourceVersions(store.lastVersion ?? "", floor) ?? 0) >= 0) return true;
    if (clock() >= untilMs) return false;
    await sleepMs(pauseMs);
  }
}

/** Names a type by group and resource: all versions are one set of objects. */
export function typeId({ group, resource }: Pick<ResourceType, "group" | "resource">): string {
  return `${resource}.${group}`;
}

function objectId(
  type: Pick<ResourceType, "group" | "resource">,
  { namespace, name }: NamespacedName,
): string {
  return `${typeId(type)}/${namespace ?? ""}/${name}`;
}

function forgetSeen(writes: Map<string, OwnWrite>, store: ObjectStore | undefined): void {
  for (const [uid, write] of writes) {
    const { namespace, name } = write.object.metadata;
    const stored = store?.get(namespace, name);
    const own = stored?.metadata.uid === uid ? stored : undefined;
    if (isSeen(write, own, store?.lastVersion)) writes.delete(uid);
  }
}

function isSeen(
  write: OwnWrite,
  stored: ApiObject | undefined,
  storeVersion: string | undefined,
): boolean {
  if (write.deleted) return stored === undefined;
  const written = write.object.metadata.resourceVersion ?? "";
  // The object itself may have come before the store as a whole is said to have come as far.
  return [storeVersion, stored?.metadata.resourceVersion].some(
    (version) => (compareResourceVersions(version ?? "", written) ?? -1) >= 0,
  );
}
