/**
 * Minimum time between the starts of two fleet plans while attempts end, in ms. A plan takes several ms of CPU time in the worker,
 * the command, the API server and Redis, which would delay attempts.
 */
export const PACE_MS = 50;
/** Time for which plans are paced after a plan has found newly ended attempts, in ms. */
export const QUIET_MS = 1_000;

/** Leaves time for attempts between the plans of the fleet. */
export class PlanPace {
  readonly #ended: () => number;
  readonly #clock: () => number;
  #endedBefore: number;
  #busyUntilMs = -Infinity;
  #nextAtMs = -Infinity;

  /**
   * @param ended returns the number of ended attempts
   * @param clock monotonic, in ms
   */
  constructor(ended: () => number, clock: () => number = () => performance.now()) {
    this.#ended = ended;
    this.#clock = clock;
    this.#endedBefore = ended();
  }

  /** Time until the next plan may begin, in ms; 0 or less if it may now. */
  restMs(): number {
    return this.#nextAtMs - this.#clock();
  }

  /** Records the start of a plan. */
  began(): void {
    const [nowMs, ended] = [this.#clock(), this.#ended()];
    if (ended !== this.#endedBefore) this.#busyUntilMs = nowMs + QUIET_MS;
    this.#endedBefore = ended;
    if (nowMs < this.#busyUntilMs) this.#nextAtMs = nowMs + PACE_MS;
  }
}
