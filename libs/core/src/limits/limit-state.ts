import type { LimitRules } from "./limit-options.ts";

/** The times of named limits, in microseconds; the scripts of the guard use the same. */
export const LIMIT: {
  readonly leaseUs: number;
  readonly graceUs: number;
  readonly lateUs: number;
  readonly pollUs: number;
  readonly leastWaitUs: number;
  readonly longestWaitUs: number;
  readonly keptMs: number;
  readonly configuredMs: number;
} = {
  /** Time after which the slot of an unresponsive worker is free. */
  leaseUs: 30_000_000,
  /** Time for which the queue waits for a waiter whose permit is available. */
  graceUs: 2_000_000,
  /** Time for which a late waiter is served before all others if it asks again. */
  lateUs: 600_000_000,
  /** Interval in which a caller that waits in place asks again. */
  pollUs: 500_000,
  leastWaitUs: 1_000,
  /** Longest time after which a waiter asks again. */
  longestWaitUs: 600_000_000,
  /** How long an unused key of a limit is kept, in ms. */
  keptMs: 3_600_000,
  /** How long the rules of an unused limit are kept, in ms. */
  configuredMs: 30 * 86_400_000,
};

interface Turn {
  /** Tokens booked before it; gives the order of the queue. */
  readonly place: number;
  readonly untilUs: number;
  /** True once it was called to ask again. */
  readonly isCalled: boolean;
}

/** One key of a limit. `test/integration/guard/limit-model.test.ts` compares it with the scripts. */
export interface LimitState {
  tatUs: number;
  intervalUs: number;
  booked: number;
  /** Holders and the ends of their leases. */
  readonly slots: Map<string, number>;
  readonly line: Map<string, Turn>;
  /** Waiters that did not ask again in time. */
  readonly late: Map<string, number>;
}

export interface PermitAsk {
  /** Keeps its place in the queue over several requests. */
  readonly waiter: string;
  /** Name of the slot; unique per permit. */
  readonly holder: string;
  readonly cost: number;
  /** Longest wait in the call; 0 for a waiter that asks again after the whole wait only. */
  readonly inPlaceUs: number;
}

export type PermitAnswer =
  | { readonly kind: "granted" }
  | { readonly kind: "wait"; readonly waitUs: number };

export function newLimitState(): LimitState {
  return { tatUs: 0, intervalUs: 0, booked: 0, slots: new Map(), line: new Map(), late: new Map() };
}

/** Returns a permit, or a place in the queue and the time after which to ask again. First come, first served. */
export function askPermit(
  state: LimitState,
  rules: LimitRules,
  ask: PermitAsk,
  nowUs: number,
): PermitAnswer {
  const { slots, line, late } = state;
  const { intervalUs, burst, concurrency } = rules;
  // After a change of the burst, a request must not wait forever.
  const cost = intervalUs === 0 ? ask.cost : Math.min(ask.cost, burst);
  refresh(state, rules, nowUs);
  prune(state, nowUs, ask.waiter);
  // The request was repeated, because the connection broke before its answer.
  if (slots.has(ask.holder)) return { kind: "granted" };
  const own = line.get(ask.waiter);
  const waiting = inOrder(state);
  const first = waiting[0]?.[1].place ?? state.booked;
  const isLate = own === undefined && late.has(ask.waiter);
  const place = own?.place ?? (isLate ? first - cost : state.booked);
  const ahead = isLate ? 0 : place - first;
  const count = isLate
    ? 0
    : own === undefined
      ? waiting.length
      : waiting.findIndex(([name]) => name === ask.waiter);
  const free = concurrency === 0 ? Infinity : concurrency - slots.size;
  const roomUs = burst * intervalUs - Math.max(0, state.tatUs - nowUs);
  const tokenWaitUs =
    intervalUs === 0 ? 0 : Math.max(0, Math.ceil((ahead + cost) * intervalUs - roomUs));
  const slotWaitUs = count < free ? 0 : slotWait(state, count - free, nowUs);
  if (count < free && tokenWaitUs === 0) {
    if (intervalUs > 0) {
      state.tatUs = Math.ceil(Math.max(state.tatUs, nowUs) + cost * intervalUs);
    }
    if (concurrency > 0) slots.set(ask.holder, nowUs + LIMIT.leaseUs);
    line.delete(ask.waiter);
    late.delete(ask.waiter);
    return { kind: "granted" };
  }
  const waitUs = Math.min(
    LIMIT.longestWaitUs,
    Math.max(LIMIT.leastWaitUs, tokenWaitUs, slotWaitUs),
  );
  if (own === undefined && !isLate) state.booked += cost;
  late.delete(ask.waiter);
  // The place of a caller that has died in its wait is soon free.
  const againUs = waitUs <= ask.inPlaceUs ? Math.min(waitUs, LIMIT.pollUs) : waitUs;
  line.set(ask.waiter, {
    place,
    untilUs: nowUs + againUs + LIMIT.graceUs,
    isCalled: slotWaitUs === 0,
  });
  return { kind: "wait", waitUs };
}

/** Renews the lease of a slot. Returns false if it has ended. */
export function renewSlot(state: LimitState, holder: string, nowUs: number): boolean {
  expire(state, nowUs);
  if (!state.slots.has(holder)) return false;
  state.slots.set(holder, nowUs + LIMIT.leaseUs);
  return true;
}

export function releaseSlot(state: LimitState, holder: string): void {
  state.slots.delete(holder);
}

export function leaveLine(state: LimitState, waiter: string): void {
  state.line.delete(waiter);
  state.late.delete(waiter);
}

/** Returns the waiters to wake: as many as there are free slots, each once. */
export function callWaiters(
  state: LimitState,
  { concurrency }: LimitRules,
  nowUs: number,
): string[] {
  if (concurrency === 0) return [];
  expire(state, nowUs);
  prune(state, nowUs, undefined);
  const free = Math.max(0, concurrency - state.slots.size);
  const called = inOrder(state)
    .slice(0, free)
    .filter(([, turn]) => !turn.isCalled);
  for (const [name, turn] of called) {
    state.line.set(name, { ...turn, untilUs: nowUs + LIMIT.graceUs, isCalled: true });
  }
  return called.map(([name]) => name);
}

function refresh(state: LimitState, { intervalUs }: LimitRules, nowUs: number): void {
  expire(state, nowUs);
  if (state.intervalUs !== intervalUs) {
    // A changed rate keeps the debt in tokens.
    const debtUs = Math.max(0, state.tatUs - nowUs);
    const tokens = state.intervalUs === 0 ? 0 : debtUs / state.intervalUs;
    state.tatUs = Math.ceil(nowUs + tokens * intervalUs);
    state.intervalUs = intervalUs;
  }
}

function expire({ slots, late }: LimitState, nowUs: number): void {
  for (const [name, untilUs] of slots) if (untilUs <= nowUs) slots.delete(name);
  for (const [name, untilUs] of late) if (untilUs <= nowUs) late.delete(name);
}

/** Moves late waiters out of the head of the queue, so that the others do not wait for them. */
function prune(state: LimitState, nowUs: number, asking: string | undefined): void {
  for (const [name, { untilUs }] of inOrder(state)) {
    if (name === asking || untilUs > nowUs) break;
    state.line.delete(name);
    state.late.set(name, nowUs + LIMIT.lateUs);
  }
  if (state.line.size === 0) state.booked = 0;
}

function inOrder({ line }: LimitState): [string, Turn][] {
  return [...line].toSorted(([one, a], [other, b]) => a.place - b.place || (one < other ? -1 : 1));
}

/** Estimates when `behind + 1` slots are free. A freed slot calls the next waiter earlier. */
function slotWait({ slots }: LimitState, behind: number, nowUs: number): number {
  const ends = [...slots.values()].toSorted((a, b) => a - b);
  const last = ends.length - 1;
  if (last < 0) return LIMIT.leaseUs;
  const endUs = ends[Math.min(behind, last)] ?? nowUs;
  return endUs - nowUs + Math.floor(behind / ends.length) * LIMIT.leaseUs;
}
