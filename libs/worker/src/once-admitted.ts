import { isKonvergeError, sleepMs } from "@konverge/core";

/** Interval of checks while the breaker stays open for long, in ms. */
const LOOK_MS = 2_000;

/**
 * Repeats a worker's first call while the guard defers it because the API server is unavailable. If the worker exited instead,
 * its supervisor would delay the restart for longer than the outage.
 */
export async function onceAdmitted<T>(
  call: () => Promise<T>,
  onHeld: (error: Error) => void,
): Promise<T> {
  for (let isReported = false; ; isReported = true) {
    try {
      return await call();
    } catch (error) {
      if (!isKonvergeError(error) || error.code !== "deferred") throw error;
      // Without credentials at the start, the configuration is probably wrong.
      if (isKonvergeError(error.cause)) throw error.cause;
      if (!isReported) onHeld(error);
      await sleepMs(Math.min(LOOK_MS, error.retryAfterMs ?? LOOK_MS));
    }
  }
}
