import type { ApiObject, JsonObject } from "@konverge/core";

/** Limits the memory for sets that few objects have. With more distinct sets of common writers, each object keeps its own copy. */
const MAX_SETS = 500;
/** The longest set that is compared, as JSON. Longer ones name elements of lists and are rarely equal. */
const MAX_CHARS = 4_096;

/**
 * Stores equal sets of managed fields once. The objects of a kind are usually written by the same few managers, and the sets
 * are a third of the memory of a small object.
 */
export class SharedFields {
  /** By their JSON, the least recently used first. */
  readonly #sets = new Map<string, JsonObject>();

  /** Replaces the sets of an object, which must not be shared yet, by equal ones of earlier objects. */
  share({ metadata }: ApiObject): void {
    for (const entry of metadata.managedFields ?? []) {
      if (entry.fieldsV1 !== undefined && !Object.isFrozen(entry))
        entry.fieldsV1 = this.#find(entry.fieldsV1);
    }
  }

  #find(set: JsonObject): JsonObject {
    const text = JSON.stringify(set);
    if (text.length > MAX_CHARS) return set;
    const found = this.#sets.get(text) ?? set;
    this.#sets.delete(text);
    this.#sets.set(text, found);
    const [oldest] = this.#sets.keys();
    if (this.#sets.size > MAX_SETS && oldest !== undefined) this.#sets.delete(oldest);
    return found;
  }
}
