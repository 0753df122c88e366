import { ensureError, sleepMs } from "@konverge/core";
import type { Schedule } from "./define-schedule.ts";
import type { ScheduleBook } from "./schedule-book.ts";

export interface SchedulerOptions {
  readonly schedules: readonly Schedule[];
  readonly book: ScheduleBook;
  /** Starts the run of that id if it is not there, and answers the id of the run that stands for it. */
  readonly start: (schedule: Schedule, id: string) => Promise<string>;
  readonly onError: (error: Error) => void;
}

export interface Scheduler {
  stop(): Promise<void>;
}

/** Longest time between two rounds, in ms: it tells others that the schedules are looked at. */
const ROUND_MS = 30_000;
const AFTER_ERROR_MS = 5_000;

/** Starts what is due. Any number of processes may do so at once: each time has one run, by its id. */
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
      // Rejects when it is stopped, which the loop sees.
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
 * Starts the run of each schedule's last time, unless that is dealt with. Times before the last one are left out: after an
 * outage there is one run, not one for each time. Answers when the next one is due.
 */
export async function startDue(
  options: SchedulerOptions & { readonly nowMs: number },
): Promise<number> {
  const { schedules, nowMs, onError } = options;
  let nextMs = Infinity;
  for (const schedule of schedules) {
    nextMs = Math.min(nextMs, schedule.times.next(nowMs));
    // The others do not wait for what is wrong with this one; it is tried again in the next round.
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
  // Noted behind the start: whoever dies in between leaves it to another process, which finds the run by its id.
  await book.pass(schedule, dueMs, await start(schedule, runIdOf(schedule, dueMs)));
}

function runIdOf({ name }: Schedule, dueMs: number): string {
  return `${name}.${new Date(dueMs).toISOString().replace(".000Z", "Z")}`;
}
