/**
 * Minimum time between the starts of two fleet plans while attempts end, in ms. A plan takes several ms of CPU time in the worker,
 * the command, the API server and Redis, which would delay attempts.
 */
export const PACE_MS = 50;
/** Time for which plans are paced after a plan has found attempts, in ms. */
export const QUIET_MS = 1_000;

/** The attempts of a worker. */
export interface AttemptCounts {
  /** Running now. */
  readonly active: number;
  /** Ended since the start. */
  readonly ended: number;
}

/** Leaves time for attempts between the plans of the fleet. */
export class PlanPace {
  readonly #count: () => AttemptCounts;
  readonly #clock: () => number;
  #endedBefore: number;
  #busyUntilMs = -Infinity;
  #nextAtMs = -Infinity;

  /** @param clock monotonic, in ms */
  constructor(count: () => AttemptCounts, clock: () => number = () => performance.now()) {
    this.#count = count;
    this.#clock = clock;
    this.#endedBefore = count().ended;
  }

  /** Time until the next plan may begin, in whole ms; 0 if it may now. */
  restMs(): number {
    return Math.ceil(Math.max(0, this.#nextAtMs - this.#clock()));
  }

  /** Records the start of a plan. */
  began(): void {
    const nowMs = this.#clock();
    const { active, ended } = this.#count();
    if (active > 0 || ended !== this.#endedBefore) this.#busyUntilMs = nowMs + QUIET_MS;
    this.#endedBefore = ended;
    if (nowMs < this.#busyUntilMs) this.#nextAtMs = nowMs + PACE_MS;
  }
}
