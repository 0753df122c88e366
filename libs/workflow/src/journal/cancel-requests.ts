import type { NumberedCancel } from "../store/run-record.ts";

/** The cancellations that arrive while an execution is at work. */
export class CancelRequests {
  #latest: NumberedCancel | undefined;
  readonly #controllers = new Map<number, AbortController>();

  get latest(): NumberedCancel | undefined {
    return this.#latest;
  }

  /** Notes a cancellation, and aborts the signals of it and of earlier ones. */
  note(cancel: NumberedCancel): void {
    if (cancel.number <= (this.#latest?.number ?? 0)) return;
    this.#latest = cancel;
    for (const [number, controller] of this.#controllers) {
      if (number <= cancel.number) controller.abort();
    }
  }

  /** Returns a signal that is aborted by the cancellation of this number, or a later one. */
  signalOf(number: number): AbortSignal {
    const controller = this.#controllers.get(number) ?? new AbortController();
    this.#controllers.set(number, controller);
    if (number <= (this.#latest?.number ?? 0)) controller.abort();
    return controller.signal;
  }
}
