import { defined } from "@konverge/core";
import type { RunWait } from "../store/run-record.ts";
import type { DeliveryOrder } from "./delivery-order.ts";

/** Interval in which a blocked run is rechecked, in ms; by then a worker may have fitting code. */
export const BLOCKED_CHECK_MS = 60_000;

/** Most waits that are stored for a waiting run, for users. */
const MAX_WAITS = 20;

/** Why an execution stops before the function has ended. */
export type Interrupt =
  /** All branches wait, until this time (epoch ms) or a wake-up. */
  | {
      readonly kind: "waiting";
      readonly untilMs?: number;
      readonly waits?: readonly RunWait[];
      readonly objects?: readonly string[];
    }
  /** The code does not fit the journal. */
  | {
      readonly kind: "blocked";
      readonly reason: string;
      /** Delay before the run is rechecked, in ms. Default {@link BLOCKED_CHECK_MS}. */
      readonly afterMs?: number;
    }
  /** The cancellation ends the run, because the function reaches no verb that could throw it. */
  | { readonly kind: "cancelled" }
  /** Another execution holds the run, or may do so soon. */
  | { readonly kind: "lost" }
  | { readonly kind: "error"; readonly error: Error };

/**
 * Counts the active and waiting verbs of one execution. A waiting verb returns a promise that never settles, so that no `catch`
 * or `finally` of the function runs when the execution stops.
 */
export class ExecutionScope {
  readonly interrupted: Promise<Interrupt>;
  readonly #order: DeliveryOrder;
  readonly #interrupt: (interrupt: Interrupt) => void;
  /** Name of the step or wait that ended last. */
  latest: string | undefined;
  #active = 0;
  #begun = 0;
  #blocked = 0;
  readonly #waits: RunWait[] = [];
  readonly #objects = new Set<string>();
  #untilMs: number | undefined;
  #closed = false;
  #mayWork = true;
  #drained: (() => void)[] = [];

  constructor(order: DeliveryOrder) {
    this.#order = order;
    order.onRest(() => this.#check());
    const { promise, resolve } = Promise.withResolvers<Interrupt>();
    this.interrupted = promise;
    this.#interrupt = resolve;
  }

  /** True if the function has not ended, and no verb is active or waits. */
  get isIdle(): boolean {
    return !this.#closed && this.#active === 0 && this.#blocked === 0 && !this.#order.isBusy;
  }

  /** Number of times that a verb became active. */
  get begun(): number {
    return this.#begun;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** False when verbs only return what is recorded. */
  get mayWork(): boolean {
    return this.#mayWork;
  }

  /** Prevents verbs from starting new work; they still return what is recorded. */
  stopWork(): void {
    this.#mayWork = false;
  }

  /** Prevents verbs from returning at all. */
  close(): void {
    this.#closed = true;
  }

  interrupt(interrupt: Interrupt): Promise<never> {
    this.#closed = true;
    this.#interrupt(interrupt);
    return never();
  }

  /** Runs work that counts as active until it settles. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#active += 1;
    this.#begun += 1;
    try {
      return await work();
    } finally {
      this.#active -= 1;
      this.#check();
    }
  }

  /** Registers a wait until one of the objects changes or the deadline has passed. Call it outside `run`. */
  block(wait?: RunWait, objects: readonly string[] = []): Promise<never> {
    this.#blocked += 1;
    const untilMs = wait?.untilMs;
    for (const object of objects) this.#objects.add(object);
    if (wait !== undefined && this.#waits.length < MAX_WAITS) this.#waits.push(wait);
    if (untilMs !== undefined) this.#untilMs = Math.min(this.#untilMs ?? Infinity, untilMs);
    this.#check();
    return never();
  }

  /** Resolves when no work is active. */
  async drained(): Promise<void> {
    if (this.#active === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#drained.push(resolve);
    await promise;
  }

  /** Checks in a later turn, after the function has handled the result. */
  #check(): void {
    if (this.#active > 0) return;
    setImmediate(() => {
      if (this.#active > 0) return;
      for (const resolve of this.#drained.splice(0)) resolve();
      if (this.#blocked === 0 || this.#order.isBusy) return;
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
