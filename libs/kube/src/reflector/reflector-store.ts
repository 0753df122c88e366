import { deepFreeze, type ApiObject } from "@konverge/core";
import type { NamespacedName } from "../names/resource-path.ts";
import type { WatchEvent } from "../contract/watch-event.ts";
import {
  IndexedObjects,
  type IndexedObjectsOptions,
  type ObjectSelection,
} from "./indexed-objects.ts";
import { SharedFields } from "./shared-fields.ts";

/** A change of one object, with its previous and its new state. */
export interface ObjectEvent<T> {
  readonly kind: "added" | "changed" | "deleted";
  /** Frozen. For a deleted object, the last known state. */
  readonly object: T;
  /** The previous known state; absent for `added`. */
  readonly previous?: T;
}

/** The size of a store. */
export interface StoreSize {
  readonly objects: number;
  /** The length of the objects as JSON, estimated from the first ones. In memory, they take about three times as much. */
  readonly bytes: number;
}

/** Objects whose size is measured. */
const SAMPLE = 100;

/** The known objects of a reflector. Only `commit` changes the store, so that a change can be delivered first. */
export interface ReflectorStore<T extends ApiObject> {
  get(target: NamespacedName): T | undefined;
  list(selection?: ObjectSelection): T[];
  /** Counts the objects and estimates their size as JSON, in characters. */
  measure(): StoreSize;
  /** Returns the changes that a watch event implies; none if they are already known. */
  eventsOf(event: Extract<WatchEvent<T>, { readonly object: T }>): ObjectEvent<T>[];
  /** Begins to compare the known objects with a whole list. */
  startList(): ListComparison<T>;
  commit(event: ObjectEvent<T>): void;
}

/** The changes that a list implies, in groups of one name. Order matters within a group. */
interface ListComparison<T> {
  /** Returns the changes that the objects of one page imply. */
  eventsOf(items: readonly T[]): ObjectEvent<T>[][];
  /** Returns the deletions of the objects that were on no page. */
  deletions(): ObjectEvent<T>[][];
}

export interface ReflectorStoreOptions<T> extends IndexedObjectsOptions {
  /** Keeps a part of an object; its name, uid and version must stay. */
  readonly trim?: (object: T) => T;
}

export function createReflectorStore<T extends ApiObject>({
  trim = (object) => object,
  ...indexing
}: ReflectorStoreOptions<T> = {}): ReflectorStore<T> {
  const objects = new IndexedObjects<T>(indexing);
  const fields = new SharedFields();
  const prepare = (object: T): T => {
    const kept = trim(object);
    fields.share(kept);
    return deepFreeze(kept);
  };

  /**
   * A different uid under the same name is a different object: the old one was deleted, even if no event reported it.
   */
  const compare = (object: T): ObjectEvent<T>[] => {
    const known = objects.get(object.metadata);
    const next = prepare(object);
    if (known === undefined) return [{ kind: "added", object: next }];
    if (known.metadata.uid !== object.metadata.uid) {
      return [
        { kind: "deleted", object: known, previous: known },
        { kind: "added", object: next },
      ];
    }
    if (known.metadata.resourceVersion === object.metadata.resourceVersion) return [];
    return [{ kind: "changed", object: next, previous: known }];
  };

  return {
    get: (target) => objects.get(target),
    list: (selection) => objects.list(selection),
    measure() {
      const { size } = objects;
      const lengths = objects.sample(SAMPLE).map((one) => JSON.stringify(one).length);
      const total = lengths.reduce((sum, length) => sum + length, 0);
      return { objects: size, bytes: size === 0 ? 0 : Math.round((total / lengths.length) * size) };
    },
    eventsOf({ kind, object }) {
      if (kind !== "deleted") return compare(object);
      const known = objects.get(object.metadata);
      // Belongs to an older object of the same name, whose deletion was reported when its successor appeared.
      if (known === undefined || known.metadata.uid !== object.metadata.uid) return [];
      return [{ kind: "deleted", object: prepare(object), previous: known }];
    },
    startList() {
      const listed = new Set<string>();
      return {
        eventsOf: (items) =>
          items.flatMap((item) => {
            listed.add(keyOf(item.metadata));
            const events = compare(item);
            return events.length === 0 ? [] : [events];
          }),
        deletions: () =>
          objects
            .list()
            .filter(({ metadata }) => !listed.has(keyOf(metadata)))
            .map((known) => [{ kind: "deleted", object: known, previous: known }]),
      };
    },
    commit({ kind, object }) {
      if (kind === "deleted") objects.delete(object.metadata);
      else objects.set(object);
    },
  };
}

function keyOf({
  namespace = "",
  name,
}: {
  readonly namespace?: string;
  readonly name: string;
}): string {
  return `${namespace}/${name}`;
}
