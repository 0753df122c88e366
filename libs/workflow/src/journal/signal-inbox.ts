import type { Held, Refusal, RunJournalStore, RunNews } from "../store/run-journal-store.ts";
import type { BufferedSignal } from "../store/run-record.ts";
import type { UpdateRefusal } from "../store/run-updates.ts";

/** The unconsumed signals of a run, as one execution reads them: by name, and only those that it asks for. */
export class SignalInbox {
  readonly #store: RunJournalStore;
  readonly #held: Held;
  /** Signals that were read, by name. An empty list means that the name had none at the claim. */
  readonly #read = new Map<string, BufferedSignal[]>();

  #isEmpty: boolean;
  #refusedCount: number;

  constructor(store: RunJournalStore, held: Held) {
    this.#store = store;
    this.#held = held;
    this.#isEmpty = held.signalCount === 0;
    this.#refusedCount = held.refusedCount ?? 0;
    for (const name of held.awaited) this.#read.set(name, []);
    for (const signal of held.signals) this.#read.get(signal.name)?.push(signal);
  }

  /** Returns the oldest signals of a name; none if it has none. */
  async oldest(name: string): Promise<readonly BufferedSignal[]> {
    if (this.#isEmpty) return [];
    const known = this.#read.get(name);
    if (known !== undefined) return known;
    const signals = [...(await this.#store.readSignals(this.#held, name))];
    this.#read.set(name, signals);
    return signals;
  }

  /** Replaces the known signals by those just read for these names; those of other names are unknown. */
  renew(names: readonly string[], { signalCount, signals }: RunNews): void {
    this.#isEmpty = signalCount === 0;
    this.#read.clear();
    for (const name of names) this.#read.set(name, []);
    for (const signal of signals) this.#read.get(signal.name)?.push(signal);
  }

  /** Number of signals that the run has refused so far. */
  get refusedCount(): number {
    return this.#refusedCount;
  }

  /** Reads the signals of a name anew when they are needed. */
  forget(name: string): void {
    this.#isEmpty = false;
    this.#read.delete(name);
  }

  /** Removes a consumed signal, in favor of those behind it. */
  remove({ name }: BufferedSignal): void {
    this.#read.delete(name);
  }

  /** Removes an update, and keeps the refusal for its caller. */
  async refuseUpdate(taken: BufferedSignal, refusal: UpdateRefusal): Promise<void> {
    await this.#store.refuseUpdate(this.#held, taken, refusal);
    this.#read.delete(taken.name);
  }

  async refuse(name: string, refused: readonly Refusal[]): Promise<void> {
    await this.#store.refuse(this.#held, name, refused);
    this.#refusedCount += refused.length;
    this.#read.delete(name);
  }
}
