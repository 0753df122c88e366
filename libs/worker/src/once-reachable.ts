import { ensureError, isKonvergeError, sleepMs, type ErrorCode } from "@konverge/core";
import type { Log } from "@konverge/engine";

/** Time between two tries, in ms. */
const PAUSE_MS = 2_000;

/** Errors of servers that may come back by themselves. All others need a person. */
const WAITS: ReadonlyMap<ErrorCode, string> = new Map([
  ["redis_unavailable", "waiting for Redis"],
  ["kube_unreachable", "waiting for the API server"],
  ["kube_timeout", "waiting for the API server"],
]);

/**
 * Repeats the start of a worker while Redis or the API server cannot be reached, for at most `limitMs`. A process that exits instead
 * is restarted ever later by its supervisor, and would be away for longer than the outage.
 */
export async function onceReachable<T>(
  start: () => Promise<T>,
  { limitMs, log }: { readonly limitMs: number; readonly log: Log },
): Promise<T> {
  const endMs = performance.now() + limitMs;
  let reported: string | undefined;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      const message = isKonvergeError(error) ? WAITS.get(error.code) : undefined;
      if (message === undefined || performance.now() + PAUSE_MS > endMs) throw error;
      // Once for each server, and again if the other one was missing in between.
      if (message !== reported) log.warn({ err: ensureError(error) }, message);
      reported = message;
      await sleepMs(PAUSE_MS * (0.5 + Math.random() / 2));
    }
  }
}
