import type { JsonObject } from "@konverge/core";

/** A stored object. Immutable: a write creates a new one. */
export class StoredObject {
  readonly key: string;
  /** Revision of the store at which it was written. */
  readonly version: number;
  readonly object: JsonObject;
  /** The object in other API versions, by kind. */
  readonly views: WeakMap<object, StoredObject> = new WeakMap();
  #text: string | undefined;

  constructor(key: string, version: number, object: JsonObject) {
    this.key = key;
    this.version = version;
    this.object = object;
  }

  /** Its JSON, created once for all readers and watchers. */
  get text(): string {
    return (this.#text ??= JSON.stringify(this.object));
  }
}

/** One change of a table. `DELETED` has the last content with the version of the deletion. */
export interface Change {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly version: number;
  readonly current: StoredObject;
  readonly previous: StoredObject | undefined;
}
