/** The limit of concurrent calls of a process. */
export interface FlightLimit {
  /** The current limit. */
  at(nowMs: number): number;
  /** Records the number of calls in flight after a start. */
  noteBegin(inFlight: number): void;
  /** Records a successful call with `inFlight` other calls in flight. */
  noteOk(wasFull: boolean): void;
}

/** Minimum, so that an idle process can start. */
const FEWEST = 4;
/** Headroom over the recent average of calls in flight. */
const ROOM = 3;
const WINDOW_MS = 2_000;

/**
 * Follows demand: three times the recent average of calls in flight, plus one per successful call while the limit is reached,
 * which doubles it per round trip. If a server stops responding, no call succeeds, so the limit stays and few calls hang
 * (Little's law: calls in flight = rate * latency).
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
