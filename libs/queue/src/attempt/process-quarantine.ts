import type { Quarantine } from "../contract/quarantine.ts";

/** Longest wait for the other attempts of the process, in ms. After that, the attempt runs beside them. */
const MAX_WAIT_MS = 60_000;

interface Waiting {
  readonly isSuspect: boolean;
  readonly start: () => void;
}

/**
 * Runs suspects alone in their process: attempts of a key whose last attempts were lost with their workers. The key that
 * crashes workers then takes no others with it, and only a key that was lost alone is dead-lettered. One instance per process,
 * shared by its queues.
 */
export class ProcessQuarantine implements Quarantine {
  readonly #waiting = new Set<Waiting>();
  #running = 0;
  /** Suspects that run or wait. */
  #suspects = 0;

  enter(isSuspect: boolean, signal: AbortSignal): Promise<void> | undefined {
    if (isSuspect) this.#suspects += 1;
    if (this.#mayRun(isSuspect)) {
      this.#running += 1;
      return undefined;
    }
    return this.#wait(isSuspect, signal);
  }

  leave(isSuspect: boolean): void {
    this.#running -= 1;
    if (isSuspect) this.#suspects -= 1;
    for (const { isSuspect: isOther, start } of this.#waiting) if (this.#mayRun(isOther)) start();
  }

  #mayRun(isSuspect: boolean): boolean {
    return isSuspect ? this.#running === 0 : this.#suspects === 0;
  }

  #wait(isSuspect: boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const start = () => {
        if (!this.#waiting.delete(waiting)) return;
        clearTimeout(timer);
        signal.removeEventListener("abort", start);
        this.#running += 1;
        resolve();
      };
      const waiting = { isSuspect, start };
      this.#waiting.add(waiting);
      const timer = setTimeout(start, MAX_WAIT_MS);
      signal.addEventListener("abort", start, { once: true });
      if (signal.aborted) start();
    });
  }
}
