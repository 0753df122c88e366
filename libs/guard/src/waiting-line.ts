import { LARGEST_FLOOR, type CallPriority, type GateCall, type Permit } from "@konverge/core";

/** A call that waits for its token. */
export interface Waiter {
  readonly call: GateCall;
  readonly cost: number;
  readonly sinceMs: number;
  readonly resolve: (permit: Permit) => void;
  readonly reject: (error: unknown) => void;
}

/** Classes in descending order. Each leaves a share of the bucket to the classes before it. */
const RANKS: Readonly<Record<CallPriority, { readonly rank: number; readonly floor: number }>> = {
  critical: { rank: 0, floor: 0 },
  interactive: { rank: 2, floor: 0 },
  event: { rank: 3, floor: 0 },
  retry: { rank: 4, floor: 0.15 },
  resync: { rank: 5, floor: LARGEST_FLOOR },
};
/** Rank of work that has started: its earlier calls must not be wasted. */
const RUNNING = { rank: 1, floor: 0 } as const;
const LANES = 6;

/** Waiting time after which a call precedes every class, in ms. */
const AGED_MS = 10_000;

export interface WaitingLine {
  readonly size: number;
  add(waiter: Waiter): void;
  remove(waiter: Waiter): void;
  /** Returns the next call: the longest waiting aged call, else the first of the highest class. */
  first(nowMs: number): Waiter | undefined;
  /** Returns the demand of the first call: its floor, and the tokens of all calls of its class and above. */
  demand(
    nowMs: number,
  ): { readonly floor: number; readonly need: number; readonly want: number } | undefined;
  /** Removes and returns all. */
  drain(): Waiter[];
}

export function createWaitingLine(): WaitingLine {
  const lanes: Waiter[][] = Array.from({ length: LANES }, () => []);
  let size = 0;
  const placeOf = ({ call }: Waiter) =>
    call.running === true && call.priority !== "critical" ? RUNNING : RANKS[call.priority];

  const line: WaitingLine = {
    get size() {
      return size;
    },
    add(waiter) {
      lanes[placeOf(waiter).rank]?.push(waiter);
      size += 1;
    },
    remove(waiter) {
      const lane = lanes[placeOf(waiter).rank] ?? [];
      const index = lane.indexOf(waiter);
      if (index < 0) return;
      lane.splice(index, 1);
      size -= 1;
    },
    first(nowMs) {
      let oldest: Waiter | undefined;
      for (const [waiter] of lanes) {
        if (waiter === undefined || nowMs - waiter.sinceMs < AGED_MS) continue;
        if (oldest === undefined || waiter.sinceMs < oldest.sinceMs) oldest = waiter;
      }
      return oldest ?? lanes.find((lane) => lane.length > 0)?.[0];
    },
    demand(nowMs) {
      const next = line.first(nowMs);
      if (next === undefined) return undefined;
      const { rank, floor } = placeOf(next);
      const above = lanes.slice(0, rank + 1);
      return {
        floor: nowMs - next.sinceMs < AGED_MS ? floor : 0,
        need: next.cost,
        want: above.reduce((sum, lane) => sum + costOf(lane), 0),
      };
    },
    drain() {
      const all = lanes.flatMap((lane) => lane.splice(0));
      size = 0;
      return all;
    },
  };
  return line;
}

/** Adds up costs to a limit: most calls cost 1, and the line may be long. */
function costOf(lane: readonly Waiter[]): number {
  if (lane.length > 64) return lane.length;
  return lane.reduce((sum, { cost }) => sum + cost, 0);
}

/** Adds a call to the line until it is admitted, rejected or aborted. */
export function waitInLine(
  line: WaitingLine,
  entry: Waiter,
  signal: AbortSignal | undefined,
): void {
  const onAbort = () => {
    line.remove(waiter);
    entry.reject(signal?.reason);
  };
  const waiter: Waiter = {
    ...entry,
    resolve(given) {
      signal?.removeEventListener("abort", onAbort);
      entry.resolve(given);
    },
    reject(error) {
      signal?.removeEventListener("abort", onAbort);
      entry.reject(error);
    },
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  line.add(waiter);
}
