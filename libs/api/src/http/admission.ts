import { KonvergeError, takeToken, type BucketLimits } from "@konverge/core";
import type { Caller } from "../access/caller.ts";

/**
 * Limits the work of callers: one bucket per caller and process. A shared bucket would be exact, but would cost each request
 * a round trip to Redis. A token stands for about a millisecond of the process, the cost of a simple request.
 */
export class Admission {
  readonly #limits: BucketLimits;
  /** The time at which the bucket of a caller is full again. */
  readonly #buckets = new Map<string, number>();

  constructor(limits: BucketLimits) {
    this.#limits = limits;
  }

  /** Takes one token. @throws KonvergeError `rate_limited` */
  admit({ id }: Pick<Caller, "id">): void {
    const now = performance.now();
    const { tatMs, waitMs } = takeToken(this.#limits, this.#buckets.get(id) ?? 0, now);
    if (waitMs > 0) {
      const detail = `more work than ${this.#limits.ratePerSecond} simple requests per second from this caller`;
      throw new KonvergeError("rate_limited", detail, { retryAfterMs: Math.ceil(waitMs) });
    }
    this.#buckets.set(id, tatMs);
  }

  /** Charges for further work, even beyond the bucket. The next requests then wait. */
  charge({ id }: Caller, tokens: number): void {
    if (tokens <= 0) return;
    const fullAtMs = Math.max(this.#buckets.get(id) ?? 0, performance.now());
    this.#buckets.set(id, fullAtMs + (tokens * 1_000) / this.#limits.ratePerSecond);
  }
}
