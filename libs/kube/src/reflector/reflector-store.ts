import { deepFreeze, type ApiObject } from "@konverge/core";
import type { NamespacedName } from "../names/resource-path.ts";
import type { WatchEvent } from "../contract/watch-event.ts";

/** One object as it was and as it is. */
export interface ObjectEvent<T> {
  readonly kind: "added" | "changed" | "deleted";
  /** Frozen. Of a deleted object the last known state. */
  readonly object: T;
  /** What was known before; absent for `added`. */
  readonly previous?: T;
}

/** What a reflector knows of its objects. Nothing enters the store but through `commit`, so that a change can be told first. */
export interface ReflectorStore<T extends ApiObject> {
  get(target: NamespacedName): T | undefined;
  list(): T[];
  /** The changes that an event of a watch means here; none for what is known already. */
  eventsOf(event: Extract<WatchEvent<T>, { readonly object: T }>): ObjectEvent<T>[];
  /** The changes from what is known to a whole list, one group per name; within a group the order counts. */
  eventsOfList(items: readonly T[]): ObjectEvent<T>[][];
  commit(event: ObjectEvent<T>): void;
}

/** @param trim what is kept of an object, and told; its name, uid and version must stay */
export function createReflectorStore<T extends ApiObject>(
  trim: (object: T) => T = (object) => object,
): ReflectorStore<T> {
  const objects = new Map<string, T>();

  /** Another uid under the same name is another object: the old one is gone, even if nobody saw it go. */
  const compare = (object: T): ObjectEvent<T>[] => {
    const known = objects.get(keyOf(object.metadata));
    const next = deepFreeze(trim(object));
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
    get: (target) => objects.get(keyOf(target)),
    list: () => [...objects.values()],
    eventsOf({ kind, object }) {
      if (kind !== "deleted") return compare(object);
      const known = objects.get(keyOf(object.metadata));
      // Of an older namesake, whose end was told when its successor came.
      if (known === undefined || known.metadata.uid !== object.metadata.uid) return [];
      return [{ kind: "deleted", object: deepFreeze(trim(object)), previous: known }];
    },
    eventsOfList(items) {
      const listed = new Set<string>();
      const groups: ObjectEvent<T>[][] = [];
      for (const item of items) {
        listed.add(keyOf(item.metadata));
        const events = compare(item);
        if (events.length > 0) groups.push(events);
      }
      for (const [key, known] of objects) {
        if (!listed.has(key)) groups.push([{ kind: "deleted", object: known, previous: known }]);
      }
      return groups;
    },
    commit({ kind, object }) {
      const key = keyOf(object.metadata);
      if (kind === "deleted") objects.delete(key);
      else objects.set(key, object);
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
