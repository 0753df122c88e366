import { isKonvergeError, sleepMs } from "@konverge/core";

/** Between two looks at a breaker that says it will be long. */
const LOOK_MS = 2_000;

/**
 * Repeats a worker's first call while the guard does not send it: the fleet knows that the API server is away. A worker that
 * ended instead would be put off by its supervisor for longer than the outage lasts.
 */
export async function onceAdmitted<T>(
  call: () => Promise<T>,
  onHeld: (error: Error) => void,
): Promise<T> {
  for (let isTold = false; ; isTold = true) {
    try {
      return await call();
    } catch (error) {
      if (!isKonvergeError(error) || error.code !== "deferred") throw error;
      if (!isTold) onHeld(error);
      await sleepMs(Math.min(LOOK_MS, error.retryAfterMs ?? LOOK_MS));
    }
  }
}
