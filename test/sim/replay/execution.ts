import { FencedError } from "../../../libs/workflow/src/store/run-journal-store.ts";
import type { RunStore } from "../../../libs/workflow/src/store/run-store.ts";
import type { Verb } from "./replay-program.ts";

/** Chance of an error of the store before, and of one after the effect of a call. */
const FAILS_AT = 0.015;
/** Message of a failed call of the store, which may have had its effect. */
export const UNAVAILABLE = "the store is unavailable";

/** A worker's execution, which may die at each of its awaits. */
export class Execution {
  readonly #stop = new AbortController();
  readonly #crashesNow: () => boolean;
  readonly #random: () => number;
  #isOver = false;
  #isLive = true;
  /** Verbs that the function has called and that have not answered. */
  readonly open = new Map<string, Verb>();

  constructor(crashesNow: () => boolean, random: () => number) {
    this.#crashesNow = crashesNow;
    this.#random = random;
  }

  /** True if the code has changed, so that the branch that was first may do its renamed step again. */
  isRenamed = false;
  /** Names of the verbs in branches that have lost a race. */
  readonly lost = new Set<string>();

  lose(name: string): void {
    this.open.delete(name);
    this.lost.add(name);
  }

  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  /** False once the function has ended, a call of the store has failed, or the worker has died. */
  get isLive(): boolean {
    return this.#isLive && !this.#isOver;
  }

  /** True once it has ended or its worker has died. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Names of the open verbs that end by time. */
  timed(): string[] {
    return [...this.open.values()].flatMap((op) =>
      op.kind === "sleep" || (op.kind === "signal" && op.timeoutMs !== undefined) ? [op.name] : [],
    );
  }

  functionEnded(): void {
    this.#isLive = false;
  }

  end(): void {
    this.#isOver = true;
  }

  /** Passes a turn of the event loop, in which the worker may die. @throws FencedError in a dead worker */
  async turn(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (!this.#isOver && this.#crashesNow()) {
      this.#isOver = true;
      this.#stop.abort(new FencedError("the worker died"));
    }
    if (this.#isOver) throw new FencedError("the worker is dead");
  }

  #unreliable<Args extends readonly unknown[], R>(
    call: (...args: Args) => Promise<R>,
  ): (...args: Args) => Promise<R> {
    return async (...args) => {
      const draw = this.#random();
      const isAcknowledged = draw >= FAILS_AT && draw <= 1 - FAILS_AT;
      if (!isAcknowledged) this.#isLive = false;
      if (draw < FAILS_AT) throw new Error(UNAVAILABLE);
      const result = await call(...args);
      if (!isAcknowledged) throw new Error(UNAVAILABLE);
      return result;
    };
  }

  /** A store whose calls take a while before and after their effect. */
  storeOf(store: RunStore): RunStore {
    const slow =
      <Args extends readonly unknown[], R>(call: (...args: Args) => Promise<R>) =>
      async (...args: Args): Promise<R> => {
        await this.turn();
        const result = await call(...args);
        for (let turns = Math.floor(this.#random() * 3); turns >= 0; turns -= 1) await this.turn();
        return result;
      };
    return {
      ...store,
      commit: slow(
        this.#unreliable(
          async (...args: Parameters<RunStore["commit"]>) => await store.commit(...args),
        ),
      ),
      note: slow(
        this.#unreliable(
          async (...args: Parameters<RunStore["note"]>) => await store.note(...args),
        ),
      ),
      admitSpread: slow(
        async (...args: Parameters<RunStore["admitSpread"]>) => await store.admitSpread(...args),
      ),
      news: slow(async (...args: Parameters<RunStore["news"]>) => await store.news(...args)),
      leave: slow(async (...args: Parameters<RunStore["leave"]>) => await store.leave(...args)),
    };
  }
}
