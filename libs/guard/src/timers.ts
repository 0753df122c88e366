/** Runs `work` once after `ms`; the returned function cancels it. */
export type Schedule = (ms: number, work: () => void) => () => void;

/** The timers of one owner. Closing cancels them, and later ones do not start. */
export class Timers {
  readonly #schedule: Schedule;
  readonly #cancels = new Set<() => void>();
  #isClosed = false;

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  readonly start: Schedule = (ms, work) => {
    if (this.#isClosed) return () => undefined;
    const cancelTimer = this.#schedule(ms, () => {
      this.#cancels.delete(cancel);
      work();
    });
    const cancel = () => {
      this.#cancels.delete(cancel);
      cancelTimer();
    };
    this.#cancels.add(cancel);
    return cancel;
  };

  close(): void {
    this.#isClosed = true;
    for (const cancel of this.#cancels) cancel();
  }
}
