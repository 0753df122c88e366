import { CALL_PRIORITIES, type CallPriority } from "@konverge/core";

/** One thing that others may wait for, such as an object lane. */
export interface UrgencyHold {
  /** Passes on the priority of work that waits for it. */
  raise(priority: CallPriority): void;
  end(): void;
}

/**
 * The priority that the calls of some work inherit from other work that waits for it. Otherwise urgent work would wait as long
 * as the least urgent work in front of it.
 */
export class Urgency {
  readonly #inherited = new Map<UrgencyHold, CallPriority | undefined>();
  readonly #listeners = new Set<() => void>();

  /** True if others may wait, so that the priority may rise. */
  get isHeld(): boolean {
    return this.#inherited.size > 0;
  }

  /** Begins to hold something. */
  hold(): UrgencyHold {
    const hold: UrgencyHold = {
      raise: (priority) => {
        if (!this.#inherited.has(hold) || this.#inherited.get(hold) === priority) return;
        this.#inherited.set(hold, priority);
        for (const listener of this.#listeners) listener();
      },
      end: () => void this.#inherited.delete(hold),
    };
    this.#inherited.set(hold, undefined);
    return hold;
  }

  /** Returns the highest of the own and the inherited priorities. */
  of(own: CallPriority): CallPriority {
    const all = new Set([own, ...this.#inherited.values()]);
    return CALL_PRIORITIES.find((priority) => all.has(priority)) ?? own;
  }

  /** Calls the listener when the inherited priorities change, until the returned function is called. */
  onRaise(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
