/**
 * Results of reads for a limited time. Concurrent reads of one key share a call. A failed read is not stored. Beyond `most`
 * entries, the oldest are deleted.
 */
export class ShortCache<T> {
  readonly #limits: { readonly keptMs: number; readonly most: number };
  readonly #entries = new Map<string, { readonly read: Promise<T>; readonly untilMs: number }>();

  constructor(limits: { readonly keptMs: number; readonly most: number }) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string, read: () => Promise<T>): Promise<T> {
    const now = performance.now();
    const known = this.#entries.get(key);
    if (known !== undefined && known.untilMs > now) return known.read;
    this.#entries.delete(key);
    const { keptMs, most } = this.#limits;
    while (this.#entries.size >= most) {
      const [oldest = ""] = this.#entries.keys();
      this.#entries.delete(oldest);
    }
    // The time begins with the read, so that a slow one extends nothing.
    const entry = { read: read(), untilMs: now + keptMs };
    this.#entries.set(key, entry);
    void entry.read.catch(() => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    });
    return entry.read;
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}
