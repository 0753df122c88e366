import { KonvergeError, type BucketLimits } from "@konverge/core";
import { Buckets } from "../access/buckets.ts";
import type { Caller } from "../access/caller.ts";

/** The number of users of a cluster is unlimited. */
const MOST_CALLERS = 10_000;

/**
 * Limits the work of callers: one bucket per caller and process. A shared bucket would be exact, but would cost each request
 * a round trip to Redis. A token stands for about a millisecond of the process, the cost of a simple request.
 */
export class Admission {
  readonly #limits: BucketLimits;
  readonly #buckets: Buckets;

  constructor(limits: BucketLimits) {
    this.#limits = limits;
    this.#buckets = new Buckets(limits, MOST_CALLERS);
  }

  /** The callers whose buckets are stored. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one token. @throws KonvergeError `rate_limited` */
  admit({ id }: Pick<Caller, "id">): void {
    const waitMs = this.#buckets.take(id);
    if (waitMs === 0) return;
    const detail = `more work than ${this.#limits.ratePerSecond} simple requests per second from this caller`;
    throw new KonvergeError("rate_limited", detail, { retryAfterMs: Math.ceil(waitMs) });
  }

  /** Charges for further work, even beyond the bucket. The next requests then wait. */
  charge({ id }: Caller, tokens: number): void {
    this.#buckets.charge(id, tokens);
  }
}
