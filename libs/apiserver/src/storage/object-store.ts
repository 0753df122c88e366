import type { JsonObject } from "@konverge/core";
import type { ChangeLog } from "./change-log.ts";
import { ObjectTable } from "./object-table.ts";
import { StoredObject, type Change } from "./stored-object.ts";

/** Changes per resource that are kept; kube-apiserver's watch cache keeps between 100 and 102,400. */
const DEFAULT_HISTORY_LIMIT = 10_000;

export interface ObjectStoreOptions {
  /** Storage for changes over a restart. If absent, objects live only in memory. */
  readonly changeLog?: ChangeLog;
  /** Changes kept per resource, at least 1. With too few, watches expire during a burst. */
  readonly historyLimit?: number;
}

/**
 * All tables under one revision counter: a resourceVersion is the store's revision at the object's last change, as in
 * etcd. Everything is synchronous, so the reads and writes of a request are atomic.
 */
export class ObjectStore {
  readonly #tables: Map<string, ObjectTable> = new Map();
  readonly #changeLog: ChangeLog | undefined;
  readonly #historyLimit: number;
  #version: number;
  /** Version from which no change has been dropped. */
  #floor: number;
  readonly #listeners: Set<(table: ObjectTable, change: Change) => void> = new Set();

  constructor({ changeLog, historyLimit = DEFAULT_HISTORY_LIMIT }: ObjectStoreOptions = {}) {
    this.#changeLog = changeLog;
    this.#historyLimit = historyLimit;
    const state = changeLog?.load();
    this.#version = state?.version ?? 1;
    this.#floor = this.#version;
    for (const { table, key, version, object } of state?.objects ?? []) {
      this.table(table).restore(key, new StoredObject(key, version, object));
    }
  }

  /** Takes over the objects of another store, without their history. */
  copy(other: ObjectStore): void {
    this.#version = other.#version;
    this.#floor = other.#version;
    for (const { id } of other.tables()) {
      for (const stored of other.table(id).list()) this.table(id).restore(stored.key, stored);
    }
  }

  /** The newest revision. */
  get version(): number {
    return this.#version;
  }

  table(id: string): ObjectTable {
    let table = this.#tables.get(id);
    if (table === undefined) {
      // A new table has no missing history.
      table = new ObjectTable(id, { historyLimit: this.#historyLimit, floor: this.#floor });
      this.#tables.set(id, table);
    }
    return table;
  }

  tables(): Iterable<ObjectTable> {
    return this.#tables.values();
  }

  /** Stores `object` under the next revision, which becomes its `metadata.resourceVersion`. */
  put(table: ObjectTable, key: string, object: JsonObject): StoredObject {
    const previous = table.get(key);
    const current = this.#stamp(key, object);
    const type = previous === undefined ? "ADDED" : "MODIFIED";
    this.#commit(table, { type, version: current.version, current, previous });
    return current;
  }

  /** Removes an object. `last` is its final content; the returned object has the revision of the deletion. */
  remove(table: ObjectTable, key: string, last: JsonObject): StoredObject {
    const previous = table.get(key);
    const current = this.#stamp(key, last);
    this.#commit(table, { type: "DELETED", version: current.version, current, previous });
    return current;
  }

  /** Drops the history up to the newest revision: older watches and page tokens expire. */
  compact(): void {
    this.#floor = this.#version;
    for (const table of this.#tables.values()) table.history.compact(this.#version);
  }

  /** Calls the listener after every change of any table. Returns a function that unsubscribes it. */
  onChange(listener: (table: ObjectTable, change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #stamp(key: string, object: JsonObject): StoredObject {
    const version = ++this.#version;
    const metadata = object["metadata"] as JsonObject;
    return new StoredObject(key, version, {
      ...object,
      metadata: { ...metadata, resourceVersion: String(version) },
    });
  }

  #commit(table: ObjectTable, change: Change): void {
    this.#changeLog?.append(table.id, change, () => this.#everything());
    table.commit(change);
    for (const listener of this.#listeners) listener(table, change);
  }

  *#everything(): Generator<{ readonly table: string; readonly stored: StoredObject }> {
    for (const table of this.#tables.values()) {
      for (const stored of table.list()) yield { table: table.id, stored };
    }
  }
}
