import type { Change } from "./stored-object.ts";

/** The latest changes of one table, bounded, so that watches can resume. Adding is O(1). */
export class EventHistory {
  readonly #limit: number;
  #changes: Change[] = [];
  #floor: number;

  /** `floor` is the version from which the history is complete. */
  constructor(limit: number, floor: number) {
    this.#limit = limit;
    this.#floor = floor;
  }

  /** The oldest version that a watch can resume from. */
  get floor(): number {
    return this.#floor;
  }

  add(change: Change): void {
    this.#changes.push(change);
    // Removed in blocks: dropping the first element of a long array moves all others.
    if (this.#changes.length >= this.#limit * 2)
      this.#dropOldest(this.#changes.length - this.#limit);
  }

  /** Returns the changes after `version`, oldest first; undefined if some of them have been dropped. */
  since(version: number): readonly Change[] | undefined {
    if (version < this.#floor) return undefined;
    let low = 0;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle]?.version ?? 0) <= version) low = middle + 1;
      else high = middle;
    }
    return this.#changes.slice(low);
  }

  /** Drops every change up to `version`, like etcd's compaction. */
  compact(version: number): void {
    const kept = this.#changes.findIndex((change) => change.version > version);
    this.#dropOldest(kept === -1 ? this.#changes.length : kept);
    this.#floor = Math.max(this.#floor, version);
  }

  #dropOldest(count: number): void {
    const last = this.#changes[count - 1];
    if (last === undefined) return;
    this.#changes = this.#changes.slice(count);
    this.#floor = Math.max(this.#floor, last.version);
  }
}
