import { takeToken, type BucketLimits } from "@konverge/core";

const KEPT_PART = 0.9;

/** Token buckets by owner, for an unlimited number of owners. Full buckets are not stored. */
export class Buckets {
  readonly #limits: BucketLimits;
  readonly #most: number;
  /** The time at which a bucket is full again. */
  readonly #fullAtMs = new Map<string, number>();

  /**
   * @param most maximum number of stored buckets. Beyond it, the fullest are removed, because their owners gain the
   * least
   */
  constructor(limits: BucketLimits, most: number) {
    this.#limits = limits;
    this.#most = most;
  }

  get size(): number {
    return this.#fullAtMs.size;
  }

  /** Takes a token and returns 0, or takes none and returns the time until there is one, in ms. */
  take(owner: string): number {
    const { tatMs, waitMs } = takeToken(
      this.#limits,
      this.#fullAtMs.get(owner) ?? 0,
      performance.now(),
    );
    if (waitMs === 0) this.#set(owner, tatMs);
    return waitMs;
  }

  /** Takes tokens, even if the bucket has fewer. */
  charge(owner: string, tokens: number): void {
    if (tokens <= 0) return;
    const fullAtMs = Math.max(this.#fullAtMs.get(owner) ?? 0, performance.now());
    this.#set(owner, fullAtMs + (tokens * 1_000) / this.#limits.ratePerSecond);
  }

  #set(owner: string, fullAtMs: number): void {
    if (!this.#fullAtMs.has(owner) && this.#fullAtMs.size >= this.#most) this.#makeRoom();
    this.#fullAtMs.set(owner, fullAtMs);
  }

  /** Removes several buckets at once, so that the cost per new owner is low. */
  #makeRoom(): void {
    const now = performance.now();
    const kept = [...this.#fullAtMs]
      .filter(([, fullAtMs]) => fullAtMs > now)
      .toSorted(([, one], [, other]) => other - one)
      .slice(0, Math.floor(this.#most * KEPT_PART));
    this.#fullAtMs.clear();
    for (const [owner, fullAtMs] of kept) this.#fullAtMs.set(owner, fullAtMs);
  }
}
