/** Reports per flush; further ones are dropped. */
const MOST_REPORTS = 1_000;

/** Reports that one worker of the fleet makes: each waits for the next flush, which selects those that no worker made lately. */
export class FleetReports {
  readonly #waiting = new Map<string, () => void>();

  /** `name` identifies the report in the fleet. */
  add(name: string, print: () => void): void {
    if (this.#waiting.size < MOST_REPORTS && !this.#waiting.has(name)) {
      this.#waiting.set(name, print);
    }
  }

  take(): ReadonlyMap<string, () => void> {
    const taken = new Map(this.#waiting);
    this.#waiting.clear();
    return taken;
  }
}
