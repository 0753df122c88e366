import { defined } from "@konverge/core";
import { MAX_WAITS, type Failure, type RunWait } from "../store/run-record.ts";
import { runningBranch, type Branch } from "./branch.ts";
import type { DeliveryOrder } from "./delivery-order.ts";

/** Why an execution stops before the function has ended. */
export type Interrupt =
  /** All branches wait, until this time (epoch ms) or a wake-up. */
  | {
      readonly kind: "waiting";
      readonly untilMs?: number;
      readonly waits?: readonly RunWait[];
      readonly objects?: readonly string[];
    }
  /** The code does not fit the journal, or threw an error that does not fail a run. */
  | {
      readonly kind: "blocked";
      readonly reason: string;
      /** The record that does not fit, and the difference in short. */
      readonly misfit?: { readonly step: string; readonly difference: string };
      readonly error?: Failure;
      /** True if the reason quotes the message of another error. */
      readonly quotesError?: boolean;
      /** Delay before the run is rechecked, in ms. Default `recheckMs` of the journal. */
      readonly afterMs?: number;
    }
  /** The run continues with this input in its next round. */
  | { readonly kind: "continued"; readonly input: unknown }
  /** The cancellation ends the run, because the function reaches no verb that could throw it. */
  | { readonly kind: "cancelled" }
  /** Another execution holds the run, or may do so soon. */
  | { readonly kind: "lost" }
  | { readonly kind: "error"; readonly error: Error };

type Failed = Extract<Interrupt, { readonly kind: "lost" | "error" }>;

/** A verb that waits. */
export interface ParkedVerb {
  /** Missing for a verb that no event continues. */
  readonly wait?: RunWait;
  readonly objects: readonly string[];
  readonly branch?: Branch;
}

/**
 * Counts the active and waiting verbs of one execution. A waiting verb returns a promise that only `resume` settles, so that no
 * `catch` or `finally` of the function runs when the execution stops.
 */
export class ExecutionScope {
  readonly interrupted: Promise<Interrupt>;
  readonly #order: DeliveryOrder;
  readonly #interrupt: (interrupt: Interrupt) => void;
  /** Name of the step or wait that ended last. */
  latest: string | undefined;
  #active = 0;
  #begun = 0;
  #resumptions = 0;
  readonly #parked = new Map<ParkedVerb, () => void>();
  #closed = false;
  #failure: Failed | undefined;
  #mayWork = true;
  #drained: (() => void)[] = [];
  #onParked: (verb: ParkedVerb) => void = () => undefined;
  #onActivity: () => void = () => undefined;

  constructor(order: DeliveryOrder) {
    this.#order = order;
    order.onRest(() => this.#check());
    const { promise, resolve } = Promise.withResolvers<Interrupt>();
    this.interrupted = promise;
    this.#interrupt = resolve;
  }

  /** The first failure of a verb's work, also after the end of the function. */
  get failure(): Failed | undefined {
    return this.#failure;
  }

  /** True if the function has not ended, and no verb is active or waits. */
  get isIdle(): boolean {
    return !this.#closed && this.#active === 0 && this.#parked.size === 0 && !this.#order.isBusy;
  }

  /** True if verbs wait while another one is active. */
  get isPartlyWaiting(): boolean {
    const mayContinue = !this.#closed && this.#mayWork;
    return mayContinue && this.#active > 0 && this.#parked.size > 0;
  }

  /** True if at most so many verbs are active, and the function waits for them or others. */
  restsBut(count: number): boolean {
    return this.#active <= count && !this.#order.isBusy;
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
    if (interrupt.kind === "error" || interrupt.kind === "lost") this.#failure ??= interrupt;
    this.#interrupt(interrupt);
    return never();
  }

  /** Runs a part of a verb, which counts as active until it settles. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#begun += 1;
    return await this.visit(work);
  }

  /** Runs other work that counts as active until it settles. */
  async visit<T>(work: () => Promise<T>): Promise<T> {
    this.#active += 1;
    this.#onActivity();
    try {
      return await work();
    } finally {
      this.#active -= 1;
      this.#onActivity();
      this.#check();
    }
  }

  /** Waits for `resume`, or for the end of the execution, and then never settles. Call it outside `run`. */
  park(wait?: RunWait, objects: readonly string[] = []): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const verb = { objects, ...defined({ wait, branch: runningBranch() }) };
    this.#parked.set(verb, resolve);
    this.#onParked(verb);
    this.#onActivity();
    this.#check();
    return promise;
  }

  /** Number of calls of `resume`. A verb that was active during one may have missed its cause. */
  get resumptions(): number {
    return this.#resumptions;
  }

  /** Lets waiting verbs check again whether their wait has ended. */
  resume(isDue: (verb: ParkedVerb) => boolean): void {
    if (this.#closed || !this.#mayWork) return;
    this.#resumptions += 1;
    for (const [verb, resolve] of this.#parked) {
      if (verb.wait === undefined || !isDue(verb)) continue;
      this.#parked.delete(verb);
      resolve();
    }
  }

  /** Ends the waits of closed branches, which no event continues. */
  dropClosed(): void {
    for (const verb of this.#parked.keys()) {
      if (verb.branch?.isClosed === true) this.#parked.delete(verb);
    }
    this.#onActivity();
  }

  /** Returns the current waits. */
  waits(): RunWait[] {
    return [...this.#parked.keys()].flatMap(({ wait }) => wait ?? []);
  }

  /** Sets what is called for each verb that begins to wait. */
  onParked(call: (verb: ParkedVerb) => void): void {
    this.#onParked = call;
  }

  /** Sets what is called when `isPartlyWaiting` may have changed. */
  onActivity(call: () => void): void {
    this.#onActivity = call;
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
      if (this.#parked.size === 0 || this.#order.isBusy) return;
      this.#closed = true;
      const waits = this.waits();
      const untilMs = waits.reduce(
        (first, wait) => Math.min(first, wait.untilMs ?? Infinity),
        Infinity,
      );
      this.#interrupt({
        kind: "waiting",
        waits: waits.slice(0, MAX_WAITS),
        objects: [...new Set([...this.#parked.keys()].flatMap(({ objects }) => objects))],
        ...(untilMs === Infinity ? {} : { untilMs }),
      });
    });
  }
}

export function never(): Promise<never> {
  return new Promise<never>(() => undefined);
}
