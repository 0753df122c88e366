import { KonvergeError } from "@konverge/core";

/** Consecutive leases that expired before they arrived; then the latency is reported. */
const EXPIRED_LEASES = 5;

/** Reports a latency at which leases expire before they arrive: the calls would wait forever. */
export class LeaseDelays {
  readonly #onError: (error: KonvergeError) => void;
  #expired = 0;

  constructor(onError: (error: KonvergeError) => void) {
    this.#onError = onError;
  }

  /** Notes how long a lease took to arrive, and how long its tokens are valid. */
  note(tookMs: number, ttlMs: number): void {
    this.#expired = tookMs >= ttlMs ? this.#expired + 1 : 0;
    if (this.#expired !== EXPIRED_LEASES) return;
    const why = `Redis answers after ${Math.ceil(tookMs)} ms, but tokens expire after ${ttlMs} ms`;
    this.#onError(
      new KonvergeError("redis_unavailable", `${why}; raise tokenTtlMs or move Redis closer`),
    );
  }
}
