import type { Place, Planned } from "./virtual-clock.ts";

/** The chunks of a watch. */
export class WatchStream implements AsyncIterable<Uint8Array> {
  readonly #chunks: Uint8Array[] = [];
  #end: { readonly error: Error | undefined } | undefined;
  #wake: (() => void) | undefined;

  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#wake?.();
  }

  end(): void {
    this.#end ??= { error: undefined };
    this.#wake?.();
  }

  fail(error: Error): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) yield chunk;
      else if (this.#end?.error !== undefined) throw this.#end.error;
      else if (this.#end !== undefined) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}

/**
 * Delivers the events of a watch to its reader. Like a connection, it keeps their order, even if the order of
 * simultaneous work is random.
 */
export class WatchDelivery {
  readonly stream: WatchStream = new WatchStream();
  readonly #place: Place;
  readonly #sent: (() => void)[] = [];
  readonly #planned = new Set<Planned>();
  #notBeforeMs = 0;

  constructor(place: Place) {
    this.#place = place;
  }

  /** Delivers an event after `ms`, but not before an earlier one. */
  send(text: string, ms: number): void {
    this.#plan(ms, () => this.stream.push(Buffer.from(text)));
  }

  /** Ends the stream after all events. */
  end(): void {
    this.#plan(1, () => this.stream.end());
  }

  /** Breaks the connection: events that have not been delivered are lost. */
  break(): void {
    const { clock } = this.#place;
    for (const planned of this.#planned) clock.cancel(planned);
    this.#planned.clear();
    this.#sent.length = 0;
    this.#notBeforeMs = 0;
    this.end();
  }

  #plan(ms: number, arrive: () => void): void {
    const { clock } = this.#place;
    const atMs = Math.max(clock.nowMs + ms, this.#notBeforeMs);
    this.#notBeforeMs = atMs;
    this.#sent.push(arrive);
    const planned = clock.after(this.#place, atMs - clock.nowMs, () => {
      this.#planned.delete(planned);
      this.#sent.shift()?.();
    });
    this.#planned.add(planned);
  }
}
