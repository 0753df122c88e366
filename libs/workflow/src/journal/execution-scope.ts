import { defined } from "@konverge/core";
import type { RunWait } from "../store/run-record.ts";

/** A run that cannot go on is looked at again after this, in ms: by then a worker may have the code for it. */
export const BLOCKED_CHECK_MS = 60_000;

/** Waits that are told of a parked run; they are for people. */
const MAX_WAITS = 20;

/** Why an activation stops although the function has not ended. */
export type Interrupt =
  /** All that goes on waits; until this time (epoch ms), or for somebody's wake-up. */
  | {
      readonly kind: "waiting";
      readonly untilMs?: number;
      readonly waits?: readonly RunWait[];
      readonly objects?: readonly string[];
    }
  /** The code does not fit the journal. */
  | { readonly kind: "blocked"; readonly reason: string }
  /** Another activation holds the run, or may do so soon. */
  | { readonly kind: "lost" }
  | { readonly kind: "error"; readonly error: Error };

/**
 * Keeps count of what goes on in one activation. A verb that must wait answers a promise that never settles, so that no
 * `catch` or `finally` of the function runs when it is parked.
 */
export class ExecutionScope {
  readonly interrupted: Promise<Interrupt>;
  readonly #interrupt: (interrupt: Interrupt) => void;
  #active = 0;
  #blocked = 0;
  readonly #waits: RunWait[] = [];
  readonly #objects = new Set<string>();
  #untilMs: number | undefined;
  #closed = false;
  #drained: (() => void)[] = [];

  constructor() {
    const { promise, resolve } = Promise.withResolvers<Interrupt>();
    this.interrupted = promise;
    this.#interrupt = resolve;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** From now on verbs begin nothing. */
  close(): void {
    this.#closed = true;
  }

  interrupt(interrupt: Interrupt): Promise<never> {
    this.#closed = true;
    this.#interrupt(interrupt);
    return never();
  }

  /** Counts as going on until it settles. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#active += 1;
    try {
      return await work();
    } finally {
      this.#active -= 1;
      this.#look();
    }
  }

  /** Waits in Redis, not here, until one of the objects changes or the time has come. Call it outside of `run`. */
  block(wait?: RunWait, objects: readonly string[] = []): Promise<never> {
    this.#blocked += 1;
    const untilMs = wait?.untilMs;
    for (const object of objects) this.#objects.add(object);
    if (wait !== undefined && this.#waits.length < MAX_WAITS) this.#waits.push(wait);
    if (untilMs !== undefined) this.#untilMs = Math.min(this.#untilMs ?? Infinity, untilMs);
    this.#look();
    return never();
  }

  /** Resolves when nothing goes on. */
  async drained(): Promise<void> {
    if (this.#active === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#drained.push(resolve);
    await promise;
  }

  /** A later turn, since the function first does what follows from the result. */
  #look(): void {
    if (this.#active > 0) return;
    setImmediate(() => {
      if (this.#active > 0) return;
      for (const resolve of this.#drained.splice(0)) resolve();
      if (this.#blocked === 0) return;
      const untilMs = this.#untilMs;
      this.#closed = true;
      const waits = this.#waits;
      const objects = [...this.#objects];
      this.#interrupt({
        kind: "waiting",
        waits,
        objects,
        ...defined({ untilMs }),
      });
    });
  }
}

export function never(): Promise<never> {
  return new Promise<never>(() => undefined);
}
