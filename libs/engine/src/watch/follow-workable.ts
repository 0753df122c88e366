import type { QueueWorker } from "@konverge/queue";
import type { Log } from "../define/log.ts";

const RESUME_SPREAD_MS = 500;

/** While the API server may not be called, jobs stay where they are: to fetch them and put them back helps nobody. */
export function followWorkable(
  workers: readonly QueueWorker[],
  log: Log,
): (workable: boolean) => void {
  let resuming: ReturnType<typeof setTimeout> | undefined;
  return (workable) => {
    clearTimeout(resuming);
    if (!workable) {
      for (const worker of workers) worker.pause();
      log.info({}, "work paused, circuit breaker open");
      return;
    }
    // Not all processes in the same moment.
    resuming = setTimeout(() => {
      for (const worker of workers) worker.resume();
      log.info({}, "work resumed");
    }, Math.random() * RESUME_SPREAD_MS);
  };
}
