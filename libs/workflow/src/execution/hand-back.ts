import type { AttemptEnd } from "@konverge/queue";

/** Times in a row that a run returns at once. If half of a fleet has fitting code, more times are unlikely by chance. */
const AT_ONCE = 8;
/** Longest delay of a run that is handed back again and again, in ms: the workers with fitting code are busy. */
const MAX_DELAY_MS = 1_000;
/** Longest rest of a slot that takes only unfitting runs, in ms. */
const MAX_REST_MS = 100;

/**
 * Hands runs back to the queue that another worker's code fits. The run returns at once; after several times in a row, with
 * growing delays. The slot then rests, for a time that doubles with each unfitting run that this worker takes in a row: a
 * worker whose code fits hardly any run leaves the queue to the others.
 */
export class HandBack {
  readonly #random: () => number;
  #inARow = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Call it when a run fitted. */
  fitted(): void {
    this.#inARow = 0;
  }

  /** Returns the end of an attempt whose run does not fit for the `times`th time in a row. */
  endOf(times: number): AttemptEnd {
    const restMs = Math.min(MAX_REST_MS, 2 ** this.#inARow);
    this.#inARow += 1;
    const afterMs = Math.min(MAX_DELAY_MS, 2 ** (times - AT_ONCE)) * ((1 + this.#random()) / 2);
    const record = JSON.stringify({ execution: "handedBack" });
    if (times <= AT_ONCE) {
      return { outcome: { kind: "cancelled", cause: "handedBack" }, record, restMs };
    }
    return { outcome: { kind: "deferred", afterMs, cause: "version" }, record, restMs };
  }
}
