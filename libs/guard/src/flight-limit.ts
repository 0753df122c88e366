/** How many calls a process may have under way. */
export interface FlightLimit {
  /** The present limit. */
  at(nowMs: number): number;
  /** So many are under way after one more began. */
  noteBegin(inFlight: number): void;
  /** A call was answered well while `inFlight` others were under way. */
  noteOk(wasFull: boolean): void;
}

/** Never fewer: a quiet process must be able to begin. */
const FEWEST = 4;
/** Room over what was lately under way on average. */
const ROOM = 3;
const WINDOW_MS = 2_000;

/**
 * Follows what is needed: three times what was lately under way on average, and one more with each good answer while the
 * limit is reached, which doubles it per round trip. When a server stops to answer, nothing is answered well, so
 * the limit stays and few calls are caught in it (Little's law: calls under way = rate * latency).
 */
export function createFlightLimit(most: number, startMs: number): FlightLimit {
  let limit = Math.min(most, FEWEST);
  let sinceMs = startMs;
  let begun = 0;
  let sum = 0;
  return {
    at(nowMs) {
      if (nowMs - sinceMs >= WINDOW_MS) {
        const needed = begun === 0 ? 0 : Math.ceil((ROOM * sum) / begun);
        limit = Math.min(limit, Math.max(FEWEST, needed));
        sinceMs = nowMs;
        begun = 0;
        sum = 0;
      }
      return Math.floor(limit);
    },
    noteBegin(inFlight) {
      begun += 1;
      sum += inFlight;
    },
    noteOk(wasFull) {
      if (wasFull) limit = Math.min(most, limit + 1);
    },
  };
}
