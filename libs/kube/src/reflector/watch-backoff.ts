import { nextDelay, isKonvergeError, type BackoffPolicy } from "@konverge/core";

/** client-go's reflector backoff: 800 ms to 30 s, each delay up to twice as long. */
const BACKOFF: BackoffPolicy = {
  baseMs: 800,
  factor: 2,
  capMs: 30_000,
  steps: Infinity,
  jitter: { kind: "proportional", share: 1 },
};
/** Time without a failure after which the backoff restarts. */
const RESET_MS = 120_000;

export interface WatchBackoffOptions {
  readonly random: () => number;
  /** Monotonic, in ms. */
  readonly clock: () => number;
}

/** The delay after each failed list or watch of one reflector. */
export class WatchBackoff {
  readonly #options: WatchBackoffOptions;
  #failures = 0;
  #failedAtMs = -Infinity;

  constructor(options: WatchBackoffOptions) {
    this.#options = options;
  }

  /** Counts a failure and returns the delay in ms before the next try, at least the delay that the error requests. */
  nextDelayMs(error: unknown): number {
    const { clock, random } = this.#options;
    const nowMs = clock();
    if (nowMs - this.#failedAtMs > RESET_MS) this.#failures = 0;
    const step = nextDelay(BACKOFF, this.#failures, random);
    this.#failures += 1;
    this.#failedAtMs = nowMs;
    const requestedMs = isKonvergeError(error) ? (error.retryAfterMs ?? 0) : 0;
    return Math.max(step.kind === "wait" ? step.afterMs : BACKOFF.capMs, requestedMs);
  }
}
