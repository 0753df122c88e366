import type { RunRef } from "../define/run-ref.ts";
import { parseKindKey } from "../store/wait-names.ts";
import type { WaitIndex } from "./wait-index.ts";

/** Changed objects of one lookup, and runs woken at once. */
const PLACES_AT_ONCE = 500;
const WAKES_AT_ONCE = 16;

export interface RunWakerOptions {
  /** Key of the kind in the index. */
  readonly kind: string;
  readonly index: WaitIndex;
  readonly wake: (run: RunRef, reason: string) => Promise<void>;
  /** Repeats failed work until it succeeds or the watch is stopped. */
  readonly retry: (work: () => Promise<void>) => Promise<void>;
  /** Aborted when the watch is stopped. */
  readonly signal: AbortSignal;
}

/** Wakes the runs that wait for changed objects of one kind. Changes during a round belong to the next one. */
export class RunWaker {
  readonly #options: RunWakerOptions;
  readonly #changed = new Set<string>();
  #isAllDue = false;
  #waking: Promise<void> | undefined;

  constructor(options: RunWakerOptions) {
    this.#options = options;
  }

  add(place: string): void {
    this.#changed.add(place);
    this.#start();
  }

  /** Wakes all runs that wait for the kind. */
  addAll(): void {
    this.#isAllDue = true;
    this.#start();
  }

  async ended(): Promise<void> {
    await this.#waking;
  }

  #start(): void {
    this.#waking ??= this.#options
      .retry(() => this.#wakeDue())
      .finally(() => {
        this.#waking = undefined;
        // A change may have arrived after the last check of the round.
        if (!this.#options.signal.aborted && this.#isDue()) this.#start();
      });
  }

  #isDue(): boolean {
    return this.#changed.size > 0 || this.#isAllDue;
  }

  /** A failed round is repeated as a whole. */
  async #wakeDue(): Promise<void> {
    while (this.#isDue()) {
      await (this.#isAllDue ? this.#wakeAll() : this.#wakeChanged());
    }
  }

  async #wakeAll(): Promise<void> {
    const { index, kind } = this.#options;
    this.#isAllDue = false;
    try {
      for await (const runs of index.allOf(kind)) await this.#wake(runs);
    } catch (error) {
      this.#isAllDue = true;
      throw error;
    }
  }

  async #wakeChanged(): Promise<void> {
    const { index, kind } = this.#options;
    const places = [...this.#changed].slice(0, PLACES_AT_ONCE);
    for (const place of places) this.#changed.delete(place);
    try {
      await this.#wake(await index.runsOf(kind, places));
    } catch (error) {
      for (const place of places) this.#changed.add(place);
      throw error;
    }
  }

  async #wake(runs: readonly RunRef[]): Promise<void> {
    const reason = `${parseKindKey(this.#options.kind).kind} has changed`;
    const left = runs.values();
    const waker = async (): Promise<void> => {
      for (const run of left) await this.#options.wake(run, reason);
    };
    await Promise.all(Array.from({ length: WAKES_AT_ONCE }, waker));
  }
}
