import { ensureError, isKonvergeError, sleepMs, type ErrorCode } from "@konverge/core";
import type { Log } from "@konverge/engine";

/** Time between two tries, in ms. */
const PAUSE_MS = 2_000;

/** Errors of servers that may come back by themselves. All others need an operator. */
const WAITS: ReadonlyMap<ErrorCode, "Redis" | "API server"> = new Map([
  ["redis_unavailable", "Redis"],
  ["kube_unreachable", "API server"],
  ["kube_timeout", "API server"],
]);

/**
 * Repeats the start of a worker while Redis or the API server cannot be reached, for at most `limitMs`. A process that exits instead
 * is restarted ever later by its supervisor, and would be away for longer than the outage.
 * @throws the reason of `stopping` between two tries
 */
export async function onceReachable<T>(
  start: () => Promise<T>,
  {
    limitMs,
    log,
    stopping,
  }: {
    readonly limitMs: number;
    readonly log: Log;
    readonly stopping?: AbortSignal | undefined;
  },
): Promise<T> {
  const endMs = performance.now() + limitMs;
  let reported: string | undefined;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      const server = isKonvergeError(error) ? WAITS.get(error.code) : undefined;
      if (server === undefined || performance.now() + PAUSE_MS > endMs) throw error;
      // Once for each server, and again if the other one was missing in between.
      if (server !== reported) {
        const fields = { err: ensureError(error) };
        if (server === "Redis") log.warn(fields, "waiting for Redis");
        else log.warn(fields, "waiting for the API server");
      }
      reported = server;
      await sleepMs(PAUSE_MS * (0.5 + Math.random() / 2), stopping);
    }
  }
}
