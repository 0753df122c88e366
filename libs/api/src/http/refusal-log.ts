import type { ErrorCode } from "@konverge/core";

const PERIOD_MS = 60_000;
/** Sources per period; further ones share an entry. */
const MOST_SOURCES = 1_000;

/** A request that was refused for its credentials, permissions or rate. */
export interface Refusal {
  readonly code: ErrorCode;
  /** Address of the client or of the proxy before the API. */
  readonly source: string;
  /** Name of the token, if it is valid. */
  readonly by?: string | undefined;
}

/** Refusals of one kind. `count` is their number in the period. */
export type CountedRefusal = Refusal & { readonly count: number };

/**
 * Reports the first refusal of each kind in a minute at once, and the number of all at the end of the minute. Many refusals
 * are therefore visible without many log lines.
 */
export class RefusalLog {
  readonly #report: (refusal: CountedRefusal) => void;
  readonly #counts = new Map<string, { readonly refusal: Refusal; count: number }>();
  #timer: NodeJS.Timeout | undefined;

  constructor(report: (refusal: CountedRefusal) => void) {
    this.#report = report;
  }

  note(given: Refusal): void {
    const refusal = this.#counts.size < MOST_SOURCES ? given : { ...given, source: "others" };
    const id = JSON.stringify([refusal.code, refusal.source, refusal.by]);
    const known = this.#counts.get(id);
    if (known !== undefined) {
      known.count++;
      return;
    }
    this.#counts.set(id, { refusal, count: 1 });
    this.#report({ ...refusal, count: 1 });
    this.#timer ??= setTimeout(() => this.flush(), PERIOD_MS).unref();
  }

  /** Reports the counts of the period and begins a new one. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const { refusal, count } of this.#counts.values()) {
      if (count > 1) this.#report({ ...refusal, count });
    }
    this.#counts.clear();
  }
}
