/** Different messages per period that are written beyond the limit, once each. */
const MOST_MESSAGES = 100;
const PERIOD_MS = 1_000;

export interface LogLimitOptions {
  /** Lines per second that are written in any case. */
  readonly linesPerSecond: number;
  /** Receives the number of omitted lines by message at the end of a second with such lines. */
  readonly report: (omitted: ReadonlyMap<string, number>) => void;
  /** Milliseconds, monotonic. */
  readonly now?: () => number;
}

/**
 * Bounds the lines of a process per second. Beyond the limit, the first line of each message is still written, so that a frequent
 * message hides no rare one, and the others are counted.
 */
export class LogLimit {
  readonly #linesPerSecond: number;
  readonly #report: LogLimitOptions["report"];
  readonly #now: () => number;
  #endMs = 0;
  #lines = 0;
  readonly #messages = new Set<string>();
  readonly #omitted = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ linesPerSecond, report, now = () => performance.now() }: LogLimitOptions) {
    this.#linesPerSecond = linesPerSecond;
    this.#report = report;
    this.#now = now;
  }

  /** Returns true if a line with this message may be written. */
  admits(message: string): boolean {
    const nowMs = this.#now();
    if (nowMs >= this.#endMs) this.#begin(nowMs);
    this.#lines += 1;
    const isNew = this.#messages.size < MOST_MESSAGES && !this.#messages.has(message);
    if (isNew) this.#messages.add(message);
    if (isNew || this.#lines <= this.#linesPerSecond) return true;
    const name = this.#messages.has(message) ? message : "others";
    this.#omitted.set(name, (this.#omitted.get(name) ?? 0) + 1);
    this.#timer ??= setTimeout(() => this.flush(), PERIOD_MS).unref();
    return false;
  }

  /** Reports the lines that were omitted so far. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#omitted.size === 0) return;
    const omitted = new Map(this.#omitted);
    this.#omitted.clear();
    this.#report(omitted);
  }

  #begin(nowMs: number): void {
    this.#endMs = nowMs + PERIOD_MS;
    this.#lines = 0;
    this.#messages.clear();
    this.flush();
  }
}
