import { AsyncLocalStorage } from "node:async_hooks";
import type { AttemptLease } from "@konverge/queue";

/** A process of the simulated world: a worker, the API server, the queue or the user. */
export interface Actor {
  readonly name: string;
  /** Virtual time of its crash. */
  deadAtMs?: number;
  /** Virtual times between which it is suspended. */
  suspended?: { readonly fromMs: number; readonly untilMs: number };
}

/** Where code of a simulation runs. */
export interface Place {
  readonly clock: VirtualClock;
  readonly actor: Actor;
  /** The attempt of the handler that runs. */
  readonly attempt?: AttemptLease;
}

/** The place of the running code; undefined outside of simulations. */
export const places: AsyncLocalStorage<Place> = new AsyncLocalStorage<Place>();

/** 2026-01-01T00:00:00Z. */
export const START_MS = 1_767_225_600_000;

export interface Planned {
  /** Later than planned if its actor is suspended then. */
  atMs: number;
  readonly tie: number;
  readonly order: number;
  readonly actor: Actor;
  readonly run: () => void;
  /** True for work in progress, false for a timer that may wait forever. */
  readonly isWork: boolean;
  isCancelled: boolean;
}

export interface VirtualClockOptions {
  /** Used by the code under test. */
  readonly random: () => number;
  /**
   * Orders work that is due at the same time; undefined for the order of planning. Returns equal numbers for equal lines, so that
   * their work keeps its order.
   */
  readonly tie?: ((line?: string) => number) | undefined;
  readonly onNetwork: (what: string) => void;
}

const macrotask = globalThis.setImmediate;

/** Virtual time: runs planned work in order, each after all microtasks of the one before. */
export class VirtualClock {
  readonly random: () => number;
  readonly onNetwork: (what: string) => void;
  readonly #tie: VirtualClockOptions["tie"];
  readonly #heap: Planned[] = [];
  #nowMs = START_MS;
  #order = 0;
  #work = 0;
  #uuids = 0;

  constructor({ random, tie, onNetwork }: VirtualClockOptions) {
    this.random = random;
    this.onNetwork = onNetwork;
    this.#tie = tie;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Planned work other than timers. */
  get pendingWork(): number {
    return this.#work;
  }

  uuid(): string {
    this.#uuids += 1;
    return `00000000-0000-4000-8000-${String(this.#uuids).padStart(12, "0")}`;
  }

  /** Plans a run of an actor after `ms`. Runs of one line of an actor that are due at the same time keep their order. */
  plan(
    actor: Actor,
    ms: number,
    run: () => void,
    { isWork, line }: { readonly isWork: boolean; readonly line?: string },
  ): Planned {
    this.#order += 1;
    const atMs = this.#nowMs + Math.max(0, Number.isFinite(ms) ? Math.ceil(ms) : 0);
    const planned: Planned = {
      atMs,
      tie: this.#tie?.(line && `${actor.name} ${atMs} ${line}`) ?? 0,
      order: this.#order,
      actor,
      run,
      isWork,
      isCancelled: false,
    };
    if (isWork) this.#work += 1;
    this.#push(planned);
    return planned;
  }

  /** Runs a function at a place, after `ms`. */
  after(place: Place, ms: number, run: () => void, isWork = true): Planned {
    return this.plan(place.actor, ms, () => places.run(place, run), { isWork });
  }

  cancel(planned: Planned): void {
    if (!planned.isCancelled && planned.isWork) this.#work -= 1;
    planned.isCancelled = true;
  }

  /** Resolves when no microtask is left. */
  async settle(): Promise<void> {
    await new Promise<void>((resolve) => {
      macrotask(resolve);
    });
  }

  /** Runs the next due work. False if nothing is planned. */
  step(): boolean {
    for (;;) {
      const next = this.#pop();
      if (next === undefined) return false;
      if (next.isCancelled) continue;
      const { actor, run, isWork } = next;
      const { suspended, deadAtMs } = actor;
      if (isWork) this.#work -= 1;
      if (deadAtMs !== undefined) {
        next.isCancelled = true;
        continue;
      }
      if (suspended !== undefined && suspended.untilMs > next.atMs) {
        if (isWork) this.#work += 1;
        // The same object, so that it can be cancelled.
        next.atMs = suspended.untilMs;
        this.#push(next);
        continue;
      }
      next.isCancelled = true;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      run();
      return true;
    }
  }

  #push(planned: Planned): void {
    const heap = this.#heap;
    heap.push(planned);
    for (let at = heap.length - 1; at > 0;) {
      const above = (at - 1) >> 1;
      if (!isBefore(heap[at]!, heap[above]!)) break;
      [heap[at], heap[above]] = [heap[above]!, heap[at]!];
      at = above;
    }
  }

  #pop(): Planned | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    heap[0] = last;
    for (let at = 0; ;) {
      let least = at;
      for (const below of [2 * at + 1, 2 * at + 2]) {
        if (below < heap.length && isBefore(heap[below]!, heap[least]!)) least = below;
      }
      if (least === at) return first;
      [heap[at], heap[least]] = [heap[least]!, heap[at]!];
      at = least;
    }
  }
}

function isBefore(a: Planned, b: Planned): boolean {
  if (a.atMs !== b.atMs) return a.atMs < b.atMs;
  return a.tie === b.tie ? a.order < b.order : a.tie < b.tie;
}
