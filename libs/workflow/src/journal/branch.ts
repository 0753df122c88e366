import { AsyncLocalStorage } from "node:async_hooks";
import type { StepKind } from "../store/run-record.ts";

const running = new AsyncLocalStorage<Branch>();

/** A call of a branch that has not returned. */
export interface OpenVerb {
  readonly key: string;
  readonly kind: StepKind;
  /** True if its body may have been started. */
  hasBegun: boolean;
}

/** Thrown instead of a record of a branch that has lost its race. */
export class BranchLostError extends Error {
  override readonly name = "BranchLostError";
}

/**
 * A branch of `w.race`. A call on `w` belongs to the branch whose function makes it, and to the branches around that one. A
 * branch that has lost begins nothing and consumes nothing; once that is recorded, it is closed: its bodies are aborted, and its
 * calls never return.
 */
export class Branch {
  /** Aborted when the branch, or one around it, is closed. */
  readonly signal: AbortSignal;
  readonly #outer = running.getStore();
  readonly #closing = new AbortController();
  readonly #open = new Map<string, OpenVerb>();
  #hasLost = false;

  constructor() {
    const own = this.#closing.signal;
    this.signal = this.#outer === undefined ? own : AbortSignal.any([this.#outer.signal, own]);
  }

  /** Runs the function of the branch. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    return await running.run(this, work);
  }

  get hasLost(): boolean {
    return this.#hasLost || this.#outer?.hasLost === true;
  }

  get isClosed(): boolean {
    return this.signal.aborted;
  }

  /** The calls that have not returned, those of nested races included. */
  get open(): Iterable<OpenVerb> {
    return this.#open.values();
  }

  enter(verb: OpenVerb): void {
    this.#open.set(verb.key, verb);
    this.#outer?.enter(verb);
  }

  leave(key: string): void {
    this.#open.delete(key);
    this.#outer?.leave(key);
  }

  /** Notes that the body of a step is started. */
  begin(key: string): void {
    const verb = this.#open.get(key);
    if (verb !== undefined) verb.hasBegun = true;
  }

  /** @throws BranchLostError in a branch that has lost */
  assertOpen(): void {
    if (this.hasLost) throw new BranchLostError("another branch of the race was first");
  }

  /** Prevents new work and new records. */
  lose(): void {
    this.#hasLost = true;
  }

  close(): void {
    this.#hasLost = true;
    this.#closing.abort(new BranchLostError("another branch of the race was first"));
  }
}

/** Returns the branch whose function is running. */
export function runningBranch(): Branch | undefined {
  return running.getStore();
}
