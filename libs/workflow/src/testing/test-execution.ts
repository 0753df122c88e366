import { setImmediate as nextTurn } from "node:timers/promises";
import type { ExecutionEnd, ExecutionOptions } from "../execution/run-execution.ts";
import type { ExecutionScope } from "../journal/execution-scope.ts";
import type { RunRef } from "../define/run-ref.ts";
import { FencedError, type RunJournalStore } from "../store/run-journal-store.ts";
import { CrashError } from "./test-faults.ts";

interface TestTimer {
  readonly atMs: number;
  readonly call: () => void;
}

type Hooks = Required<Pick<ExecutionOptions, "stopped" | "wakeUps" | "after" | "onScope">>;

/** An execution of a test. It may be at rest before its end, if the test holds a body. */
export class TestExecution {
  readonly ref: RunRef;
  readonly hooks: Hooks;
  readonly #now: () => number;
  readonly #stopping = new AbortController();
  readonly #timers = new Set<TestTimer>();
  #scope: ExecutionScope | undefined;
  #held = 0;
  #holdBegins = Promise.withResolvers<void>();
  #onWake: (() => void) | undefined;
  #missedWake = false;
  #end: ExecutionEnd | undefined;
  #ended: Promise<void> = Promise.resolve();

  constructor(ref: RunRef, now: () => number) {
    this.ref = ref;
    this.#now = now;
    this.hooks = {
      stopped: this.#stopping.signal,
      onScope: (scope) => void (this.#scope = scope),
      wakeUps: {
        start: (onWake) => {
          this.#onWake = onWake;
          if (this.#missedWake) queueMicrotask(() => this.wake());
        },
        stop: () => void (this.#onWake = undefined),
      },
      after: (ms, call) => {
        const timer = { atMs: now() + ms, call };
        this.#timers.add(timer);
        return () => void this.#timers.delete(timer);
      },
    };
  }

  /** Time of its next timer, epoch ms. */
  get dueAtMs(): number {
    return Math.min(...[...this.#timers].map(({ atMs }) => atMs));
  }

  /** True if it was woken when it noticed no events, so that another execution must follow. */
  get missedWake(): boolean {
    return this.#missedWake;
  }

  /** True if its process has died while a body was held, or its run was terminated. */
  get hasStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Ends it as the death of its process does. @throws CrashError */
  crash(what: string): never {
    const error = new CrashError(what);
    this.#stopping.abort(error);
    throw error;
  }

  /** Ends it because its run was terminated. */
  fence(): void {
    this.#stopping.abort(new FencedError("the run was terminated"));
  }

  start(run: () => Promise<ExecutionEnd>): void {
    this.#ended = run().then((end) => void (this.#end = end));
  }

  wake(): void {
    this.#missedWake = this.#onWake === undefined;
    this.#onWake?.();
  }

  fireTimers(): void {
    for (const timer of this.#timers) {
      if (timer.atMs > this.#now()) continue;
      this.#timers.delete(timer);
      timer.call();
    }
  }

  /** Returns a `commit` whose crash also ends the held bodies. */
  crashing(commit: RunJournalStore["commit"]): RunJournalStore["commit"] {
    return async (...args) => {
      try {
        return await commit(...args);
      } catch (error) {
        if (error instanceof CrashError && this.#held > 0) this.#stopping.abort(error);
        throw error;
      }
    };
  }

  /** Waits in a body, until `released` or the end of the attempt. */
  async hold(released: Promise<void>, attempt: AbortSignal): Promise<void> {
    attempt.throwIfAborted();
    this.#held += 1;
    this.#holdBegins.resolve();
    const { promise: aborted, resolve } = Promise.withResolvers<void>();
    attempt.addEventListener("abort", () => resolve(), { once: true });
    try {
      await Promise.race([released, aborted]);
    } finally {
      this.#held -= 1;
      if (this.#held === 0) this.#holdBegins = Promise.withResolvers<void>();
    }
    attempt.throwIfAborted();
  }

  /** Resolves when only held bodies are at work, with undefined, or with the end of the execution. */
  async rest(): Promise<ExecutionEnd | undefined> {
    for (;;) {
      if (this.#held === 0) await Promise.race([this.#ended, this.#holdBegins.promise]);
      if (this.#end !== undefined) return this.#end;
      // By then, the work of what was called has begun.
      await nextTurn();
      if (this.#held > 0 && this.#scope?.restsBut(this.#held) === true) return undefined;
    }
  }
}
