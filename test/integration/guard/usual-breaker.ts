/**
 * The circuit breaker of common articles: a counter, a state, a time. Kept unchanged, with its faults, for comparison with
 * Konverge's.
 */
export function usualBreaker({
  maxFailures,
  resetMs,
  clock,
}: {
  readonly maxFailures: number;
  readonly resetMs: number;
  readonly clock: () => number;
}): <T>(call: () => Promise<T>) => Promise<T> {
  let state: "closed" | "open" | "halfOpen" = "closed";
  let failures = 0;
  let failedAtMs = 0;
  return async (call) => {
    if (state === "open") {
      if (clock() - failedAtMs < resetMs) throw new Error("breaker is open");
      state = "halfOpen";
    }
    try {
      const result = await call();
      failures = 0;
      state = "closed";
      return result;
    } catch (error) {
      failures += 1;
      failedAtMs = clock();
      if (failures >= maxFailures) state = "open";
      throw error;
    }
  };
}
