import { ensureError, sleepMs } from "@konverge/core";
import type { Schedule } from "./define-schedule.ts";
import type { ScheduleBook } from "./schedule-book.ts";

export interface SchedulerOptions {
  readonly schedules: readonly Schedule[];
  readonly book: ScheduleBook;
  /** Starts a run with that id if it does not exist. Returns the id of the run for this time. */
  readonly start: (schedule: Schedule, id: string) => Promise<string>;
  readonly onError: (error: Error) => void;
}

export interface Scheduler {
  stop(): Promise<void>;
}

/** Longest time between two rounds, in ms; each round marks the schedules as checked. */
const ROUND_MS = 30_000;
const AFTER_ERROR_MS = 5_000;

/** Starts due runs. Any number of processes may do so at once: the id ensures one run per time. */
export function startScheduler({ schedules, book, start, onError }: SchedulerOptions): Scheduler {
  const stopped = new AbortController();
  const run = async () => {
    for (let isFirst = true; !stopped.signal.aborted;) {
      let pauseMs = AFTER_ERROR_MS;
      try {
        const nowMs = await book.now();
        if (isFirst) await book.prune(nowMs);
        isFirst = false;
        const nextMs = await startDue({ schedules, book, start, nowMs, onError });
        pauseMs = Math.min(ROUND_MS, nextMs - nowMs);
      } catch (thrown) {
        onError(ensureError(thrown));
      }
      // Rejects on stop, which ends the loop.
      await sleepMs(pauseMs, stopped.signal).catch(() => undefined);
    }
  };
  const running = run();
  return {
    async stop() {
      stopped.abort();
      await running;
    },
  };
}

/**
 * Starts the run of each schedule's last time, unless that is handled. Earlier times are skipped: after an outage there is one
 * run, not one per time. Returns when the next one is due.
 */
export async function startDue(
  options: SchedulerOptions & { readonly nowMs: number },
): Promise<number> {
  const { schedules, nowMs, onError } = options;
  let nextMs = Infinity;
  for (const schedule of schedules) {
    nextMs = Math.min(nextMs, schedule.times.next(nowMs));
    // A failing schedule does not delay the others; it is retried in the next round.
    await startLast(schedule, options).catch((error: unknown) => onError(ensureError(error)));
  }
  return nextMs;
}

async function startLast(
  schedule: Schedule,
  { book, start, nowMs }: SchedulerOptions & { readonly nowMs: number },
): Promise<void> {
  const doneMs = await book.look(schedule, nowMs);
  const dueMs = schedule.times.last(nowMs);
  if (dueMs <= doneMs) return;
  // Marked after the start: if this process dies in between, another one finds the run by its id.
  await book.pass(schedule, dueMs, await start(schedule, runIdOf(schedule, dueMs)));
}

function runIdOf({ name }: Schedule, dueMs: number): string {
  return `${name}.${new Date(dueMs).toISOString().replace(".000Z", "Z")}`;
}
