import type { JsonObject } from "@konverge/core";

/** One object as it is stored. Never changed in place: a write makes a new one. */
export class StoredObject {
  readonly key: string;
  /** Revision of the store at which it was written. */
  readonly version: number;
  readonly object: JsonObject;
  /** What other API versions make of it, by whoever reads it so. */
  readonly views: WeakMap<object, StoredObject> = new WeakMap();
  #text: string | undefined;

  constructor(key: string, version: number, object: JsonObject) {
    this.key = key;
    this.version = version;
    this.object = object;
  }

  /** Its JSON, made once however many readers and watchers there are. */
  get text(): string {
    return (this.#text ??= JSON.stringify(this.object));
  }
}

/** One change of a table. `DELETED` carries the last content with the version of the deletion. */
export interface Change {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly version: number;
  readonly current: StoredObject;
  readonly previous: StoredObject | undefined;
}
