/** The name of a controller or workflow, and the cluster that it runs on. */
export interface ObservedName {
  readonly cluster: string;
  readonly name: string;
}

/** Observers by cluster and name. An engine that replaces another on its cluster may overlap with it. */
export class Observed<T> {
  readonly #byName = new Map<string, { readonly of: ObservedName; readonly observers: Set<T> }>();

  /** Returns the function that removes the observer. */
  add(of: ObservedName, observer: T): () => void {
    const id = JSON.stringify([of.cluster, of.name]);
    const entry = this.#byName.get(id) ?? { of, observers: new Set() };
    this.#byName.set(id, entry);
    entry.observers.add(observer);
    return () => {
      entry.observers.delete(observer);
      if (entry.observers.size === 0 && this.#byName.get(id) === entry) this.#byName.delete(id);
    };
  }

  *[Symbol.iterator](): IterableIterator<[ObservedName, ReadonlySet<T>]> {
    for (const { of, observers } of this.#byName.values()) yield [of, observers];
  }
}
