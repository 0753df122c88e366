import { TOKEN_RANK, type CallPriority, type GateCall, type Permit } from "@konverge/core";

/** A call that waits for its token. */
export interface Waiter {
  call: GateCall;
  readonly cost: number;
  readonly sinceMs: number;
  readonly resolve: (permit: Permit) => void;
  readonly reject: (error: unknown) => void;
}

interface Place {
  /** Lane in this process, first served first. */
  readonly lane: number;
  /** Rank of token requests for it. */
  readonly rank: number;
}

/** Classes in descending order. */
const PLACES: Readonly<Record<CallPriority, Place>> = {
  critical: { lane: 0, rank: TOKEN_RANK.critical },
  interactive: { lane: 2, rank: TOKEN_RANK.ordinary },
  event: { lane: 3, rank: TOKEN_RANK.ordinary },
  retry: { lane: 4, rank: TOKEN_RANK.retry },
  resync: { lane: 5, rank: TOKEN_RANK.resync },
};
/** Work that has started: its earlier calls must not be wasted. */
const RUNNING: Place = { lane: 1, rank: TOKEN_RANK.ordinary };
/** By lane. */
const CLASSES = ["critical", "running", "interactive", "event", "retry", "resync"] as const;
const LANES = CLASSES.length;

/** Waiting time after which a call precedes every class but `critical`, in ms. */
const AGED_MS = 10_000;

export interface WaitingLine {
  readonly size: number;
  /** Classes with waiting calls. Calls of work that has started are `running`. */
  readonly byClass: Readonly<Record<string, number>>;
  add(waiter: Waiter): void;
  remove(waiter: Waiter): void;
  /** Moves a waiting call to a higher class, behind the calls there that have waited longer. Returns true if it moved. */
  raise(waiter: Waiter, priority: CallPriority): boolean;
  /** Returns the next call: a critical one, else the longest waiting aged call, else the first of the highest class. */
  first(nowMs: number): Waiter | undefined;
  /** Returns the demand of the first call: its rank and cost, and the tokens of all calls of that rank and above. */
  demand(
    nowMs: number,
  ): { readonly rank: number; readonly need: number; readonly want: number } | undefined;
  /** Time at which the next call ages; undefined if that changes no rank. */
  agingMs(nowMs: number): number | undefined;
  /** Removes and returns all. */
  drain(): Waiter[];
}

export function createWaitingLine(): WaitingLine {
  const lanes: Waiter[][] = Array.from({ length: LANES }, () => []);
  let size = 0;
  const placeOf = ({ call }: Waiter): Place =>
    call.running === true && call.priority !== "critical" ? RUNNING : PLACES[call.priority];
  const isAged = (waiter: Waiter, nowMs: number) => nowMs - waiter.sinceMs >= AGED_MS;
  const rankOf = (waiter: Waiter, nowMs: number) => {
    const { rank } = placeOf(waiter);
    return isAged(waiter, nowMs) ? Math.min(rank, TOKEN_RANK.ordinary) : rank;
  };

  const line: WaitingLine = {
    get size() {
      return size;
    },
    get byClass() {
      const counts = lanes.map((lane, at) => [CLASSES[at] ?? "", lane.length] as const);
      return Object.fromEntries(counts.filter(([, count]) => count > 0));
    },
    add(waiter) {
      lanes[placeOf(waiter).lane]?.push(waiter);
      size += 1;
    },
    remove(waiter) {
      const lane = lanes[placeOf(waiter).lane] ?? [];
      const index = lane.indexOf(waiter);
      if (index < 0) return;
      lane.splice(index, 1);
      size -= 1;
    },
    raise(waiter, priority) {
      const call = { ...waiter.call, priority };
      const { lane } = placeOf({ ...waiter, call });
      const from = placeOf(waiter).lane;
      if (lane >= from || lanes[from]?.includes(waiter) !== true) return false;
      line.remove(waiter);
      waiter.call = call;
      const others = lanes[lane] ?? [];
      const index = others.findIndex(({ sinceMs }) => sinceMs > waiter.sinceMs);
      others.splice(index < 0 ? others.length : index, 0, waiter);
      size += 1;
      return true;
    },
    first(nowMs) {
      const [critical, ...others] = lanes.map(([head]) => head);
      // Leaders renew their Leases under any backlog.
      if (critical !== undefined) return critical;
      let oldest: Waiter | undefined;
      for (const waiter of others) {
        if (waiter === undefined || !isAged(waiter, nowMs)) continue;
        if (oldest === undefined || waiter.sinceMs < oldest.sinceMs) oldest = waiter;
      }
      return oldest ?? others.find((waiter) => waiter !== undefined);
    },
    demand(nowMs) {
      const next = line.first(nowMs);
      if (next === undefined) return undefined;
      const rank = rankOf(next, nowMs);
      const waiting = lanes.map((lane) => {
        const end = lane.findIndex((waiter) => rankOf(waiter, nowMs) > rank);
        return costOf(end < 0 ? lane : lane.slice(0, end));
      });
      return { rank, need: next.cost, want: waiting.reduce((sum, cost) => sum + cost, 0) };
    },
    agingMs(nowMs) {
      const heads = lanes.map(([head]) => head).filter((head) => head !== undefined);
      const times = heads
        .filter((head) => placeOf(head).rank > TOKEN_RANK.ordinary && !isAged(head, nowMs))
        .map(({ sinceMs }) => sinceMs + AGED_MS);
      return times.length === 0 ? undefined : Math.min(...times);
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

/** Adds a call to the line until it is admitted, rejected or aborted. Returns a function that raises its class. */
export function waitInLine(
  line: WaitingLine,
  entry: Waiter,
  signal: AbortSignal | undefined,
): (priority: CallPriority) => boolean {
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
  return (priority) => line.raise(waiter, priority);
}
