import type { ApiObject } from "@konverge/core";
import type { NamespacedName } from "../names/resource-path.ts";

/** Returns the values under which an object is found. Must depend on the object only. */
export type IndexFunction<T extends ApiObject = ApiObject> = (
  object: T,
) => string | readonly string[] | undefined;

/** Selects the objects that match all given parts. */
export interface ObjectSelection {
  /** Default: all namespaces. */
  readonly namespace?: string | undefined;
  /** Uid of an owner of the objects. */
  readonly ownerUid?: string | undefined;
  readonly indexed?: readonly IndexedValue[] | undefined;
}

export interface IndexedValue {
  readonly index: IndexFunction;
  readonly value: string;
}

export interface IndexedObjectsOptions {
  readonly indexes?: readonly IndexFunction[];
  /**
   * Receives the error of an index function when an object is added or changed. The object then has no value in this index.
   */
  readonly onIndexError?: (error: unknown, object: ApiObject, index: IndexFunction) => void;
}

/**
 * Objects by namespace and name, with an index by the uid of their owners and further indexes. A list touches only the
 * objects of the smallest index that its selection names.
 */
export class IndexedObjects<T extends ApiObject> {
  readonly #byNamespace = new Map<string, Map<string, T>>();
  readonly #byOwner = new Map<string, Set<T>>();
  readonly #indexes: ReadonlyMap<IndexFunction, Map<string, Set<T>>>;
  readonly #onIndexError: NonNullable<IndexedObjectsOptions["onIndexError"]>;

  constructor({ indexes = [], onIndexError = () => undefined }: IndexedObjectsOptions = {}) {
    this.#indexes = new Map(indexes.map((index) => [index, new Map<string, Set<T>>()]));
    this.#onIndexError = onIndexError;
  }

  get({ namespace = "", name }: NamespacedName): T | undefined {
    return this.#byNamespace.get(namespace)?.get(name);
  }

  set(object: T): void {
    const { namespace = "", name } = object.metadata;
    const inNamespace = this.#byNamespace.get(namespace) ?? new Map<string, T>();
    const known = inNamespace.get(name);
    if (known !== undefined) this.#removeFromIndexes(known);
    this.#byNamespace.set(namespace, inNamespace);
    inNamespace.set(name, object);
    for (const uid of ownerUidsOf(object)) addTo(this.#byOwner, uid, object);
    for (const [index, entries] of this.#indexes) {
      const values = this.#valuesOf(index, object, this.#onIndexError);
      for (const value of values) addTo(entries, value, object);
    }
  }

  delete({ namespace = "", name }: NamespacedName): void {
    const inNamespace = this.#byNamespace.get(namespace);
    const known = inNamespace?.get(name);
    if (known === undefined) return;
    inNamespace?.delete(name);
    if (inNamespace?.size === 0) this.#byNamespace.delete(namespace);
    this.#removeFromIndexes(known);
  }

  get size(): number {
    let size = 0;
    for (const objects of this.#byNamespace.values()) size += objects.size;
    return size;
  }

  /** Returns some of the objects. */
  sample(count: number): T[] {
    const found: T[] = [];
    for (const objects of this.#byNamespace.values()) {
      for (const object of objects.values()) {
        if (found.length === count) return found;
        found.push(object);
      }
    }
    return found;
  }

  list(selection: ObjectSelection = {}): T[] {
    const { namespace, ownerUid, indexed = [] } = selection;
    const candidates = [
      namespace === undefined ? undefined : entriesOf(this.#byNamespace.get(namespace)),
      ownerUid === undefined ? undefined : entriesOf(this.#byOwner.get(ownerUid)),
      ...indexed.map(({ index, value }) => {
        const entries = this.#indexes.get(index);
        return entries && entriesOf(entries.get(value));
      }),
    ].filter((entries) => entries !== undefined);
    if (candidates.length === 0) {
      const all = [...this.#byNamespace.values()].flatMap((objects) => [...objects.values()]);
      return indexed.length === 0 ? all : this.#filter(all, selection);
    }
    const smallest = candidates.reduce((least, one) => (one.size < least.size ? one : least));
    return this.#filter(smallest.values(), selection);
  }

  #filter(objects: Iterable<T>, { namespace, ownerUid, indexed = [] }: ObjectSelection): T[] {
    const found: T[] = [];
    for (const object of objects) {
      const matches =
        (namespace === undefined || object.metadata.namespace === namespace) &&
        (ownerUid === undefined || ownerUidsOf(object).includes(ownerUid)) &&
        indexed.every(({ index, value }) => this.#valuesOf(index, object).includes(value));
      if (matches) found.push(object);
    }
    return found;
  }

  #removeFromIndexes(object: T): void {
    for (const uid of ownerUidsOf(object)) removeFrom(this.#byOwner, uid, object);
    for (const [index, entries] of this.#indexes) {
      for (const value of this.#valuesOf(index, object)) removeFrom(entries, value, object);
    }
  }

  #valuesOf(
    index: IndexFunction,
    object: T,
    onError?: IndexedObjectsOptions["onIndexError"],
  ): readonly string[] {
    try {
      return indexValues(index, object);
    } catch (error) {
      onError?.(error, object, index);
      return [];
    }
  }
}

/** Returns the values of an object in an index. @throws the error of the function; TypeError if it returns anything else */
export function indexValues(index: IndexFunction, object: ApiObject): readonly string[] {
  const values: unknown = index(object) ?? [];
  const list = Array.isArray(values) ? (values as readonly unknown[]) : [values];
  if (list.every((value) => typeof value === "string")) return list;
  throw new TypeError("an index function must return text, a list of texts, or undefined");
}

interface Entries<T> {
  readonly size: number;
  values(): Iterable<T>;
}

function entriesOf<T>(entries: Entries<T> | undefined): Entries<T> {
  return entries ?? { size: 0, values: () => [] };
}

function ownerUidsOf({ metadata }: ApiObject): readonly string[] {
  return metadata.ownerReferences?.map(({ uid }) => uid) ?? [];
}

function addTo<T>(index: Map<string, Set<T>>, value: string, object: T): void {
  const entries = index.get(value);
  if (entries === undefined) index.set(value, new Set([object]));
  else entries.add(object);
}

function removeFrom<T>(index: Map<string, Set<T>>, value: string, object: T): void {
  const entries = index.get(value);
  entries?.delete(object);
  if (entries?.size === 0) index.delete(value);
}
