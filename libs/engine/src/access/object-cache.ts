import {
  compareResourceVersions,
  resourceId,
  sleepMs,
  type ApiObject,
  type ResourceRef,
  type ResourceType,
} from "@konverge/core";
import {
  isNarrower,
  matchesLabels,
  parseLabelSelector,
  type LabelSelector,
  type NamespacedName,
  type ObjectSelection,
} from "@konverge/kube";
import type { ObjectStore, ObjectStores, StoreScope } from "./object-store.ts";
import { OwnWrites } from "./own-writes.ts";

interface CachedList extends ObjectSelection {
  readonly atLeast: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

type Selectors = { readonly [Kind in "labels" | "fields"]?: string | undefined };

/** Cached reads of a worker, never older than the worker's own writes. */
export interface ObjectCache {
  /**
   * Undefined if no watch of this worker has all objects that the list can return, or it does not reach version `atLeast` within
   * a second. Then read from the API server. Costs time in proportion to the objects of the owner, index or namespace.
   */
  list<T extends ApiObject>(type: ResourceType<T>, options: CachedList): Promise<T[] | undefined>;
  /**
   * The object, if a watch with the selectors `within` has it at version `atLeast` or later and with all own writes of this
   * worker. Otherwise undefined: an object of another watch may be outside of the selectors.
   * Waits up to 31 ms for a watch that is behind: the watch of the leader may have been faster.
   * Also undefined for some time after a conflict on the object: while others write it, the watch is behind, and a write based
   * on it costs a call instead of saving one.
   */
  find<T extends ApiObject>(
    type: ResourceType<T>,
    name: NamespacedName,
    atLeast: string,
    within?: Selectors,
  ): Promise<T | undefined>;
  noteWrite(type: ResourceType, object: ApiObject): void;
  noteDelete(type: ResourceType, object: ApiObject): void;
  noteConflict(ref: ResourceRef): void;
}

/** Longest time that a list waits for a watch to reach the requested version, in ms. */
const CATCH_UP_MS = 1_000;
/** Pauses between looks for an object in a watch that is behind, in ms. A longer wait would cost more than a read. */
const CATCH_UP_PAUSES_MS = [0, 1, 2, 4, 8, 16];
/** Time after a conflict during which an object is read from the API server, in ms. */
const CONTESTED_MS = 5_000;
/** Maximum of contested objects in memory; the oldest are dropped. */
const CONTESTED_KEPT = 1_000;

/**
 * Overlays the watched objects with this worker's own writes, as client-go's MutationCache does: a handler that just created
 * a child must not create it again because the watch is a few milliseconds behind.
 */
export function createObjectCache(
  stores: ObjectStores,
  clock: () => number = () => performance.now(),
): ObjectCache {
  const ownWrites = new WeakMap<ObjectStore, OwnWrites>();
  const contestedAtMs = new Map<string, number>();

  const writesOf = (store: ObjectStore): OwnWrites => {
    const writes = ownWrites.get(store) ?? new OwnWrites(store);
    ownWrites.set(store, writes);
    return writes;
  };
  const note = (type: ResourceType, object: ApiObject, deleted: boolean) => {
    const { uid, namespace } = object.metadata;
    if (uid === undefined) return;
    for (const store of stores.started(type, namespace)) {
      writesOf(store).note(uid, { object, deleted });
    }
  };

  return {
    async list<T extends ApiObject>(
      type: ResourceType<T>,
      { atLeast, labelSelector, fieldSelector, ...selection }: CachedList,
    ) {
      const wanted = parseLabelSelector(labelSelector ?? "");
      if (wanted === undefined) return undefined;
      const store = stores.find(
        type,
        selection.namespace,
        (scope) => hasForm(scope, type) && hasAll(scope, wanted, fieldSelector),
      );
      if (store === undefined || !(await isReady(store))) return undefined;
      if (atLeast !== undefined && !(await hasReached(store, atLeast, clock))) return undefined;
      const found = writesOf(store).list(selection) as T[] | undefined;
      return labelSelector === undefined
        ? found
        : found?.filter(({ metadata }) => matchesLabels(wanted, metadata.labels));
    },
    async find<T extends ApiObject>(
      type: ResourceType<T>,
      name: NamespacedName,
      atLeast: string,
      { labels, fields }: Selectors = {},
    ) {
      const contestedMs = clock() - (contestedAtMs.get(objectId(type, name)) ?? -Infinity);
      if (contestedMs < CONTESTED_MS) return undefined;
      // Never starts a watch: it would save one call, whereas a list saves one per page.
      for (const store of stores.started(type, name.namespace)) {
        const { scope } = store;
        const isWithin = scope.labels === labels && scope.fields === fields;
        if (!isWithin || !hasForm(scope, type)) continue;
        const found = await findIn(store, writesOf(store), name, atLeast);
        if (found !== undefined) return found as T;
      }
      return undefined;
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
      // With finalizers it stays visible until they are removed, which the watch reports.
      if ((object.metadata.finalizers ?? []).length === 0) note(type, object, true);
    },
  };
}

/** True if the store has the wanted part of objects, in the wanted version. */
function hasForm({ type }: StoreScope, { keep, version }: ResourceType): boolean {
  return type.keep === keep && type.version === version;
}

/** True if every object that matches the selectors is in the scope. */
function hasAll(
  { labels, fields }: StoreScope,
  wanted: LabelSelector,
  fieldSelector: string | undefined,
): boolean {
  if (fields !== fieldSelector) return false;
  if (labels === undefined) return true;
  const selected = parseLabelSelector(labels);
  return selected !== undefined && isNarrower(wanted, selected);
}

/** Waits for the first list. False if there will be none: the API server then answers, or reports what it forbids. */
async function isReady({ synced, unavailable }: ObjectStore): Promise<boolean> {
  const listed = synced.then(
    () => true,
    () => false,
  );
  if (unavailable === undefined) return listed;
  return Promise.race([listed, unavailable.then(() => false)]);
}

/** Waits for a watch that is slightly behind. */
async function findIn(
  store: ObjectStore,
  writes: OwnWrites,
  { namespace, name }: NamespacedName,
  atLeast: string,
): Promise<ApiObject | undefined> {
  for (const pauseMs of CATCH_UP_PAUSES_MS) {
    if (pauseMs > 0) await sleepMs(pauseMs);
    const object = store.get(namespace, name);
    if (object === undefined) return undefined;
    const order = compareResourceVersions(object.metadata.resourceVersion ?? "", atLeast);
    if (order === undefined) return undefined;
    if (order >= 0 && !writes.isBehind(object)) return object;
  }
  return undefined;
}

/** Waits for a watch that is slightly behind. The first checks come soon, because it is mostly a matter of a millisecond. */
async function hasReached(
  store: ObjectStore,
  version: string,
  clock: () => number,
): Promise<boolean> {
  const untilMs = clock() + CATCH_UP_MS;
  for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, 50)) {
    // There is no waiting for versions that do not compare.
    if ((compareResourceVersions(store.lastVersion ?? "", version) ?? 0) >= 0) return true;
    if (clock() >= untilMs) return false;
    await sleepMs(pauseMs);
  }
}

function objectId(
  type: Pick<ResourceType, "group" | "resource">,
  { namespace, name }: NamespacedName,
): string {
  return `${resourceId(type)}/${namespace ?? ""}/${name}`;
}
