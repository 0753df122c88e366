import { ORDER, type AdmitRequest } from "@konverge/core";
import type { Turn } from "./guard-state.ts";

/** The fleet's order of token requests: first come, first served in each class, over all workers. */
export interface Order {
  readonly order: Map<string, Turn>;
  readonly booked: number[];
}

/** Returns the tokens that other workers may take before this one. Removes workers that missed their turn. */
export function aheadOf(
  state: Order,
  { worker, rank }: Pick<AdmitRequest, "worker" | "rank">,
  nowUs: number,
): number {
  const own = state.order.get(worker);
  let ahead = 0;
  for (let each = 1; each <= rank; each += 1) {
    const first = firstOf(state, { worker, rank: each }, nowUs);
    if (first === undefined) continue;
    const isOwn = each === rank && own?.rank === rank;
    ahead += (isOwn ? own.place : (state.booked[each] ?? 0)) - first;
  }
  return ahead;
}

/** Keeps the worker's place, or gives it the last one of its class. */
export function book(
  { order, booked }: Order,
  { worker, rank }: Pick<AdmitRequest, "worker" | "rank">,
  { amount, untilUs }: { readonly amount: number; readonly untilUs: number },
): void {
  const end = untilUs + ORDER.graceUs;
  const own = order.get(worker);
  if (own !== undefined) {
    order.set(worker, { ...own, untilUs: end });
    return;
  }
  if (order.size === 0) booked.fill(0);
  const place = booked[rank] ?? 0;
  order.set(worker, { rank, place, untilUs: end });
  booked[rank] = place + amount;
}

function firstOf(
  { order }: Order,
  { worker, rank }: Pick<AdmitRequest, "worker" | "rank">,
  nowUs: number,
): number | undefined {
  const waiting = [...order]
    .filter(([, turn]) => turn.rank === rank)
    .toSorted(([, { place: a }], [, { place: b }]) => a - b);
  for (const [name, { place, untilUs }] of waiting) {
    if (name === worker || untilUs > nowUs) return place;
    order.delete(name);
  }
  return undefined;
}
