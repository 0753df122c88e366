/**
 * Least time between the begins of two plans of the fleet while the worker runs attempts, in ms. A plan costs several ms of CPU
 * time of the worker, the command, the API server and Redis, for which attempts would wait.
 */
export const PACE_MS = 50;
/** Time without an ended attempt after which plans are no longer slowed down, in ms. */
export const QUIET_MS = 1_000;

/** Leaves time for attempts between the plans of the fleet. */
export class PlanPace {
  readonly #ended: () => number;
  readonly #clock: () => number;
  #endedBefore: number;
  #busyUntilMs = -Infinity;
  #nextAtMs = -Infinity;

  /**
   * @param ended the number of ended attempts
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

  began(): void {
    const [nowMs, ended] = [this.#clock(), this.#ended()];
    if (ended !== this.#endedBefore) this.#busyUntilMs = nowMs + QUIET_MS;
    this.#endedBefore = ended;
    if (nowMs < this.#busyUntilMs) this.#nextAtMs = nowMs + PACE_MS;
  }
}
