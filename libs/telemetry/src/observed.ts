/** Observers by name; several clusters may have a controller or workflow of one name. */
export class Observed<T> {
  readonly #byName = new Map<string, Set<T>>();

  /** Returns the function that removes the observer. */
  add(name: string, observer: T): () => void {
    const observers = this.#byName.get(name) ?? new Set();
    this.#byName.set(name, observers.add(observer));
    return () => {
      observers.delete(observer);
      if (observers.size === 0 && this.#byName.get(name) === observers) this.#byName.delete(name);
    };
  }

  [Symbol.iterator](): IterableIterator<[string, ReadonlySet<T>]> {
    return this.#byName.entries();
  }
}
