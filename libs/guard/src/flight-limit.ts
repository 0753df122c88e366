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
/** Room over what was lately needed. */
const ROOM = 2;
const WINDOW_MS = 5_000;

/**
 * Follows what is needed: twice the most calls that were lately under way at once, and one more with each good answer
 * while the limit is reached, which doubles it per round trip. When a server stops to answer, nothing is answered well, so
 * the limit stays and few calls are caught in it (Little's law: calls under way = rate * latency).
 */
export function createFlightLimit(most: number, startMs: number): FlightLimit {
  let limit = Math.min(most, FEWEST);
  let sinceMs = startMs;
  let peak = 0;
  let lastPeak = 0;
  return {
    at(nowMs) {
      if (nowMs - sinceMs >= WINDOW_MS) {
        sinceMs = nowMs;
        lastPeak = peak;
        peak = 0;
        const needed = Math.max(FEWEST, ROOM * lastPeak);
        limit = Math.min(most, Math.min(limit, needed));
      }
      return Math.floor(limit);
    },
    noteBegin(inFlight) {
      peak = Math.max(peak, inFlight);
    },
    noteOk(wasFull) {
      if (wasFull) limit = Math.min(most, limit + 1);
    },
  };
}
