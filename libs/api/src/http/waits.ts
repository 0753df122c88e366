import { ensureError, KonvergeError, sleepMs } from "@konverge/core";
import type { Caller } from "../access/caller.ts";

const POLL_MS = 100;
/** Reads per poll. With more waits, each is read less often. */
const MOST_READ = 100;
const MOST_OF_CALLER = 500;
const MOST_OF_PROCESS = 5_000;
/** A longer request is answered only if its caller is still valid. */
export const LONG_MS = 1_000;
const COME_AGAIN_MS = 1_000;

/** A state in Redis that a caller waits for. */
export interface WaitTarget<T> {
  /** Waits with the same ID share their reads. */
  readonly id: string;
  readonly read: () => Promise<T>;
  readonly isEnd: (state: T) => boolean;
}

/** An open wait of a request. */
export interface Wait extends Disposable {
  /** Returns the state when it is the end, or the last one when the wait times out. */
  until<T>(target: WaitTarget<T>): Promise<T>;
}

interface Reader {
  readonly next: (state: unknown) => void;
  readonly fail: (error: unknown) => void;
}
interface Poll {
  readonly read: () => Promise<unknown>;
  readonly readers: Set<Reader>;
}

/**
 * Returns the wait of a change that has been made. If the caller may not see the state at the end, or if the state
 * cannot be read, the wait returns the state at its beginning, so that no error is returned for a change that was made.
 */
export function waitOfChange(wait: Wait, isStillValid: () => Promise<boolean>): Wait {
  return {
    async until(target) {
      let first: { readonly state: Awaited<ReturnType<typeof target.read>> } | undefined;
      const startMs = performance.now();
      const read = async () => {
        const state = await target.read();
        first ??= { state };
        return state;
      };
      try {
        const last = await wait.until({ ...target, read });
        if (first === undefined || performance.now() - startMs <= LONG_MS) return last;
        return (await isStillValid()) ? last : first.state;
      } catch (error) {
        if (first === undefined) throw error;
        return first.state;
      }
    },
    [Symbol.dispose]: () => wait[Symbol.dispose](),
  };
}

/** The waits of a process. One poll reads all states, at most 1,000 per second, however many callers wait. */
export class Waits {
  /** In the order of their next read. */
  readonly #polls = new Map<string, Poll>();
  readonly #open = new Map<string, number>();
  #opened = 0;
  #isPolling = false;

  /**
   * Opens a wait of at most `waitMs`, which ends early with `signal`. 0 does not wait.
   * @throws KonvergeError `rate_limited` if the caller or the process has too many
   */
  open({ id }: Caller, waitMs: number, signal: AbortSignal): Wait {
    const endMs = performance.now() + waitMs;
    const until: Wait["until"] = (target) => this.#until(target, endMs - performance.now(), signal);
    if (waitMs <= 0) return { until, [Symbol.dispose]: () => undefined };
    const own = this.#open.get(id) ?? 0;
    if (own >= MOST_OF_CALLER || this.#opened >= MOST_OF_PROCESS) {
      const most = own >= MOST_OF_CALLER ? `${MOST_OF_CALLER} waits of this caller` : "all waits";
      const detail = `${most} are in use; end some, or ask without waiting`;
      throw new KonvergeError("rate_limited", detail, { retryAfterMs: COME_AGAIN_MS });
    }
    this.#open.set(id, own + 1);
    this.#opened++;
    return {
      until,
      [Symbol.dispose]: () => {
        this.#opened--;
        const left = (this.#open.get(id) ?? 1) - 1;
        if (left === 0) this.#open.delete(id);
        else this.#open.set(id, left);
      },
    };
  }

  async #until<T>(
    { id, read, isEnd }: WaitTarget<T>,
    leftMs: number,
    signal: AbortSignal,
  ): Promise<T> {
    let state: T = await read();
    if (isEnd(state) || leftMs <= 0 || signal.aborted) return state;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const end = () => resolve(state);
    const reader: Reader = {
      next(found) {
        state = found as T;
        if (isEnd(state)) end();
      },
      fail: reject,
    };
    const timer = setTimeout(end, leftMs);
    signal.addEventListener("abort", end, { once: true });
    const leave = this.#follow(id, read, reader);
    try {
      return await promise;
    } finally {
      leave();
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
    }
  }

  #follow(id: string, read: () => Promise<unknown>, reader: Reader): () => void {
    const poll = this.#polls.get(id) ?? { read, readers: new Set<Reader>() };
    poll.readers.add(reader);
    this.#polls.set(id, poll);
    if (!this.#isPolling) void this.#poll();
    return () => {
      poll.readers.delete(reader);
      if (poll.readers.size === 0) this.#polls.delete(id);
    };
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    while (this.#polls.size > 0) {
      await sleepMs(POLL_MS);
      const due = [...this.#polls].slice(0, MOST_READ);
      await Promise.all(due.map(([id, poll]) => this.#read(id, poll)));
    }
    this.#isPolling = false;
  }

  async #read(id: string, poll: Poll): Promise<void> {
    // To the end of the order.
    this.#polls.delete(id);
    this.#polls.set(id, poll);
    try {
      const state = await poll.read();
      for (const { next } of poll.readers) next(state);
    } catch (error) {
      for (const { fail } of poll.readers) fail(ensureError(error));
    }
  }
}
