import { ensureError } from "@konverge/core";

/** Calls that were sent without waiting for their results. Failures are reported; `settled` waits for all results. */
export class BackgroundCalls {
  readonly #onError: (error: Error) => void;
  readonly #sent = new Set<Promise<unknown>>();

  constructor(onError: (error: Error) => void) {
    this.#onError = onError;
  }

  add(call: Promise<unknown>): void {
    const tracked = call
      .catch((error: unknown) => this.#onError(ensureError(error)))
      .finally(() => this.#sent.delete(tracked));
    this.#sent.add(tracked);
  }

  async settled(): Promise<void> {
    while (this.#sent.size > 0) await Promise.all(this.#sent);
  }
}
