import {
  askPermit,
  callWaiters,
  findLimit,
  LIMIT,
  leaveLine,
  newLimitState,
  releaseSlot,
  type Limits,
  type LimitState,
  type LimitUse,
  type NamedLimits,
  type PermitRequest,
  type PermitResult,
} from "@konverge/core";

export interface MemoryLimitsOptions {
  readonly limits: NamedLimits;
  /** The manual clock, in ms. */
  readonly now: () => number;
  readonly wake: (waiter: string) => void;
}

/** Named limits in one process with a manual clock, by the rules of production. */
export class MemoryLimits implements Limits {
  readonly #options: MemoryLimitsOptions;
  readonly #states = new Map<string, LimitState>();
  #permits = 0;

  constructor(options: MemoryLimitsOptions) {
    this.#options = options;
  }

  check(use: LimitUse): void {
    findLimit(this.#options.limits, use);
  }

  async take({ waiter, cost = 1, ...use }: PermitRequest): Promise<PermitResult> {
    const rules = findLimit(this.#options.limits, { ...use, cost });
    const state = this.#stateOf(use);
    this.#permits += 1;
    const holder = String(this.#permits);
    const ask = { waiter, holder, cost, inPlaceUs: 0 };
    const answer = askPermit(state, rules, ask, this.#nowUs());
    this.#call(use);
    if (answer.kind === "wait")
      return { kind: "waiting", afterMs: Math.ceil(answer.waitUs / 1_000) };
    // The clock may pass by the end of the lease while a body is held; production would renew it.
    if (state.slots.has(holder)) state.slots.set(holder, Infinity);
    const release = () => {
      releaseSlot(state, holder);
      this.#call(use);
    };
    return { kind: "held", permit: { signal: new AbortController().signal, release } };
  }

  leave({ waiter, ...use }: LimitUse & Pick<PermitRequest, "waiter">): void {
    leaveLine(this.#stateOf(use), waiter);
    this.#call(use);
  }

  #call(use: LimitUse): void {
    const rules = findLimit(this.#options.limits, { name: use.name });
    for (const waiter of callWaiters(this.#stateOf(use), rules, this.#nowUs())) {
      this.#options.wake(waiter);
    }
  }

  #stateOf({ name, key = "" }: LimitUse): LimitState {
    const id = `${name}\n${key}`;
    const state = this.#states.get(id) ?? newLimitState();
    this.#states.set(id, state);
    return state;
  }

  #nowUs(): number {
    // A test may begin at 0, which is no time of Redis.
    return (this.#options.now() + LIMIT.configuredMs) * 1_000;
  }
}
