import type { TimeSpan } from "@konverge/core";

const MOST_SPANS = 100;

/** The latest times in which the API server could not be used, as this process has seen them. */
export class OutageLog {
  readonly #past: TimeSpan[] = [];
  #sinceMs: number | undefined;

  /** Notes whether the API server may be called from now on. */
  note(isWorkable: boolean, nowMs: number = Date.now()): void {
    if (!isWorkable) {
      this.#sinceMs ??= nowMs;
      return;
    }
    if (this.#sinceMs === undefined) return;
    this.#past.push({ fromMs: this.#sinceMs, toMs: nowMs });
    if (this.#past.length > MOST_SPANS) this.#past.shift();
    this.#sinceMs = undefined;
  }

  /** The last one may still last. */
  spans(nowMs: number = Date.now()): readonly TimeSpan[] {
    if (this.#sinceMs === undefined) return this.#past;
    return [...this.#past, { fromMs: this.#sinceMs, toMs: nowMs }];
  }
}
