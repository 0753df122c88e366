import type { QueueWorker } from "@konverge/queue";
import type { Log } from "../define/log.ts";

const RESUME_SPREAD_MS = 500;

/** Leaves jobs in the queue while the API server must not be called; taking them would only return them. */
export function followWorkable(
  workers: readonly QueueWorker[],
  log: Log,
): (workable: boolean) => void {
  let resuming: ReturnType<typeof setTimeout> | undefined;
  return (workable) => {
    clearTimeout(resuming);
    if (!workable) {
      for (const worker of workers) worker.pause();
      log.info({}, "work paused, API server unavailable");
      return;
    }
    // Spread, so that the processes do not resume at the same time.
    resuming = setTimeout(() => {
      for (const worker of workers) worker.resume();
      log.info({}, "work resumed");
    }, Math.random() * RESUME_SPREAD_MS);
  };
}
