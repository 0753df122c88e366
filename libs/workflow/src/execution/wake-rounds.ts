import { ensureError, formatKey, type ObjectKey } from "@konverge/core";

/** Interval of the rounds, in ms: the longest delay of a wake-up, apart from Redis. */
const EVERY_MS = 100;

/** The wake-ups of one run during its execution. */
export interface WakeUps {
  /** Calls `onWake` after each wake-up, until `stop` is called. Wake-ups before the first call count as well. */
  start(onWake: () => void): void;
  stop(): void;
}

interface Followed {
  readonly key: ObjectKey;
  /** Number of the last known request; 0 if none waits. */
  number: number;
  onWake: () => void;
}

export interface WakeRoundsOptions {
  /** Returns, per key, the number of its last waiting request, or 0. */
  readonly read: (keys: readonly ObjectKey[]) => Promise<readonly number[]>;
  readonly onError: (error: Error) => void;
  /** Calls once after `ms`, unless the returned function is called. Default: a timer. */
  readonly after?: (ms: number, call: () => void) => () => void;
}

/** Finds wake-ups for the executions of this process, by one read per round. Without followed runs there are no rounds. */
export class WakeRounds {
  readonly #options: WakeRoundsOptions;
  readonly #followed = new Map<string, Followed>();
  #cancelNext: (() => void) | undefined;
  #last: Promise<void> = Promise.resolve();
  #hasFailed = false;
  #isEnded = false;

  constructor(options: WakeRoundsOptions) {
    this.#options = options;
  }

  /** Returns the wake-ups of one attempt. */
  of(key: ObjectKey): WakeUps {
    const id = formatKey(key);
    const followed: Followed = { key, number: 0, onWake: () => undefined };
    return {
      start: (onWake) => {
        followed.onWake = onWake;
        this.#followed.set(id, followed);
        this.#schedule();
      },
      stop: () => {
        if (this.#followed.get(id) === followed) this.#followed.delete(id);
      },
    };
  }

  /** Ends the rounds. Resolves after the last one. */
  async end(): Promise<void> {
    this.#isEnded = true;
    this.#cancelNext?.();
    await this.#last;
  }

  #schedule(): void {
    if (this.#isEnded || this.#cancelNext !== undefined || this.#followed.size === 0) return;
    const { after = timer } = this.#options;
    this.#cancelNext = after(EVERY_MS, () => {
      this.#last = this.#round().finally(() => {
        this.#cancelNext = undefined;
        this.#schedule();
      });
    });
  }

  async #round(): Promise<void> {
    const followed = [...this.#followed.values()];
    if (followed.length === 0) return;
    try {
      const numbers = await this.#options.read(followed.map(({ key }) => key));
      this.#hasFailed = false;
      for (const [index, each] of followed.entries()) {
        const number = numbers[index] ?? 0;
        if (number === each.number) continue;
        each.number = number;
        each.onWake();
      }
    } catch (error) {
      // Once per outage of Redis, not in every round.
      if (!this.#hasFailed) this.#options.onError(ensureError(error));
      this.#hasFailed = true;
    }
  }
}

function timer(ms: number, call: () => void): () => void {
  const timeout = setTimeout(call, ms);
  return () => clearTimeout(timeout);
}
