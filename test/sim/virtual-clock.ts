/** A clock that advances only when no work is left at the current time, in ms. */
export interface VirtualClock {
  readonly nowMs: number;
  /** Runs `work` once after `ms`, by due time, then by call order; the returned function cancels it. */
  readonly schedule: (ms: number, work: () => void) => () => void;
  /** Runs all work that is due before `untilMs`, including promises. */
  run(untilMs: number): Promise<void>;
}

interface Entry {
  readonly atMs: number;
  readonly order: number;
  work: (() => void) | undefined;
}

/** Upper bound for chained promises after a timer. */
const TURNS = 12;

export function createVirtualClock(): VirtualClock {
  const heap: Entry[] = [];
  let nowMs = 0;
  let orders = 0;
  const isBefore = (a: Entry, b: Entry) =>
    a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

  function push(entry: Entry): void {
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = heap[up] as Entry;
      if (!isBefore(entry, parent)) break;
      heap[at] = parent;
      at = up;
    }
    heap[at] = entry;
  }

  function pop(): Entry | undefined {
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || first === last) return first;
    let at = 0;
    for (;;) {
      let down = 2 * at + 1;
      if (down >= heap.length) break;
      if (down + 1 < heap.length && isBefore(heap[down + 1] as Entry, heap[down] as Entry))
        down += 1;
      const child = heap[down] as Entry;
      if (!isBefore(child, last)) break;
      heap[at] = child;
      at = down;
    }
    heap[at] = last;
    return first;
  }

  const settle = async () => {
    for (let turn = 0; turn < TURNS; turn += 1) await Promise.resolve();
  };

  return {
    get nowMs() {
      return nowMs;
    },
    schedule(ms, work) {
      const entry: Entry = { atMs: nowMs + Math.max(0, ms), order: (orders += 1), work };
      push(entry);
      return () => {
        entry.work = undefined;
      };
    },
    async run(untilMs) {
      await settle();
      for (;;) {
        const next = heap[0];
        if (next === undefined || next.atMs >= untilMs) break;
        pop();
        if (next.work === undefined) continue;
        nowMs = next.atMs;
        next.work();
        await settle();
      }
      nowMs = untilMs;
    },
  };
}
