import { KonvergeError, sleepMs } from "@konverge/core";
import type { ScanOptions } from "@konverge/queue";
import type { Caller } from "../access/caller.ts";
import type { Admission } from "./admission.ts";

/** Scans of one caller at a time. */
const MOST_OF_CALLER = 8;
const BUDGET_MS = 500;
const COME_AGAIN_MS = 1_000;
/** Rows that are as much work as a simple request. */
const ROWS_PER_TOKEN = 50;

/** Runs a scan with the options that it needs to share the process with others. */
export type RunScan = <T>(scan: (options: ScanOptions) => Promise<T>) => Promise<T>;

/**
 * The scans of a process. They take turns, one round trip at a time, and use at most half of the time, so that other requests
 * run in between. A caller pays for the rows that it scans.
 */
export class Scans {
  readonly #admission: Admission;
  readonly #budgetMs: number;
  readonly #running = new Map<string, number>();
  #last: Promise<unknown> = Promise.resolve();

  /** @param budgetMs time after which a scan returns the rows that it has found, in ms */
  constructor(admission: Admission, budgetMs = BUDGET_MS) {
    this.#admission = admission;
    this.#budgetMs = budgetMs;
  }

  /** @throws KonvergeError `rate_limited` */
  async run<T>(caller: Caller, scan: (options: ScanOptions) => Promise<T>): Promise<T> {
    const { id } = caller;
    const running = this.#running.get(id) ?? 0;
    if (running >= MOST_OF_CALLER) {
      const detail = `${MOST_OF_CALLER} searches of this caller are in progress`;
      throw new KonvergeError("rate_limited", detail, { retryAfterMs: COME_AGAIN_MS });
    }
    this.#running.set(id, running + 1);
    try {
      return await scan({
        turn: (read) => this.#turn(read),
        budgetMs: this.#budgetMs,
        onScanned: (rows) => this.#admission.charge(caller, rows / ROWS_PER_TOKEN),
      });
    } finally {
      const left = (this.#running.get(id) ?? 1) - 1;
      if (left === 0) this.#running.delete(id);
      else this.#running.set(id, left);
    }
  }

  #turn<T>(read: () => Promise<T>): Promise<T> {
    let restMs = 0;
    const mine = this.#last.then(async () => {
      // Lets the event loop serve requests that arrived during the previous turn.
      await new Promise((resolve) => setImmediate(resolve));
      const startedMs = performance.now();
      try {
        return await read();
      } finally {
        restMs = performance.now() - startedMs;
      }
    });
    const rest = () => sleepMs(restMs);
    this.#last = mine.then(rest, rest);
    return mine;
  }
}
