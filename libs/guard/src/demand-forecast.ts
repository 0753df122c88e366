/** Predicts the calls within the lifetime of a token from recent calls. */
export interface DemandForecast {
  note(): void;
  /** Expected calls within the next window. */
  at(nowMs: number): number;
}

export function createDemandForecast(windowMs: number, startMs: number): DemandForecast {
  let sinceMs = startMs;
  let calls = 0;
  let perMs = 0;
  return {
    note() {
      calls += 1;
    },
    at(nowMs) {
      const elapsedMs = nowMs - sinceMs;
      if (elapsedMs >= windowMs) {
        perMs = (perMs + calls / elapsedMs) / 2;
        sinceMs = nowMs;
        calls = 0;
      }
      return Math.floor(perMs * windowMs);
    },
  };
}
