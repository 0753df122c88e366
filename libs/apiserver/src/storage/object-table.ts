import { EventHistory } from "./event-history.ts";
import type { Change, StoredObject } from "./stored-object.ts";

/** All objects of one resource, with the changes that watches can resume from. */
export class ObjectTable {
  /** `plural.group`. */
  readonly id: string;
  readonly history: EventHistory;
  readonly #objects: Map<string, StoredObject> = new Map();
  readonly #listeners: Set<(change: Change) => void> = new Set();
  #sortedKeys: string[] | undefined;

  constructor(id: string, limits: { readonly historyLimit: number; readonly floor: number }) {
    this.id = id;
    this.history = new EventHistory(limits.historyLimit, limits.floor);
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): StoredObject | undefined {
    return this.#objects.get(key);
  }

  /** Restores an object from a log or snapshot without notifying listeners. */
  restore(key: string, stored: StoredObject | undefined): void {
    this.#sortedKeys = undefined;
    if (stored === undefined) this.#objects.delete(key);
    else this.#objects.set(key, stored);
  }

  /** Makes a change visible: objects, history, watchers, in this order. */
  commit(change: Change): void {
    const { type, current } = change;
    if (type !== "MODIFIED") this.#sortedKeys = undefined;
    if (type === "DELETED") this.#objects.delete(current.key);
    else this.#objects.set(current.key, current);
    this.history.add(change);
    for (const listener of this.#listeners) listener(change);
  }

  /** Returns a function that unsubscribes. A listener must not throw: the write has happened. */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Objects in the order of their keys; `prefix` narrows to a namespace. */
  list(prefix = ""): StoredObject[] {
    const keys = (this.#sortedKeys ??= [...this.#objects.keys()].toSorted());
    return collect(keys, this.#objects, prefix);
  }

  /** Returns the objects at `version`, by reverting newer changes. Undefined if the history is too short. */
  listAt(version: number, prefix = ""): StoredObject[] | undefined {
    const newer = this.history.since(version);
    if (newer === undefined) return undefined;
    if (newer.length === 0) return this.list(prefix);
    const objects = new Map(this.#objects);
    for (const { current, previous } of newer.toReversed()) {
      if (previous === undefined) objects.delete(current.key);
      else objects.set(current.key, previous);
    }
    return collect([...objects.keys()].toSorted(), objects, prefix);
  }
}

function collect(
  keys: readonly string[],
  objects: ReadonlyMap<string, StoredObject>,
  prefix: string,
): StoredObject[] {
  const found: StoredObject[] = [];
  for (let index = lowerBound(keys, prefix); index < keys.length; index++) {
    const key = keys[index];
    if (key === undefined || !key.startsWith(prefix)) break;
    const stored = objects.get(key);
    if (stored !== undefined) found.push(stored);
  }
  return found;
}

function lowerBound(keys: readonly string[], prefix: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (String(keys[middle]) < prefix) low = middle + 1;
    else high = middle;
  }
  return low;
}
