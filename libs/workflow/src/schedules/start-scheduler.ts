import { ensureError, sleepMs } from "@konverge/core";
import type { Schedule } from "./define-schedule.ts";
import { dueTimes } from "./due-times.ts";
import type { ScheduleBook } from "./schedule-book.ts";

export interface SchedulerOptions {
  readonly schedules: readonly Schedule[];
  readonly book: ScheduleBook;
  /** Starts the run for a time, if its id is unknown. Returns the id of the run that covers the time, if there is one. */
  readonly start: (
    schedule: Schedule,
    id: string,
    scheduledAtMs: number,
  ) => Promise<string | undefined>;
  /** Resolves with false while no run may start; the times remain due. Default: they may. */
  readonly mayStart?: () => Promise<boolean>;
  readonly onError: (error: Error) => void;
}

export interface Scheduler {
  stop(): Promise<void>;
}

/** Longest time between two rounds, in ms; each round marks the schedules as checked. */
const ROUND_MS = 30_000;
const AFTER_ERROR_MS = 5_000;
/** Time between two rounds while no run may start, in ms. */
const HELD_MS = 5_000;

/** Starts due runs. Any number of processes may do so at once: the id ensures one run per time. */
export function startScheduler(options: SchedulerOptions): Scheduler {
  const { book, onError } = options;
  const stopped = new AbortController();
  const run = async () => {
    for (let isFirst = true; !stopped.signal.aborted;) {
      let pauseMs = AFTER_ERROR_MS;
      try {
        const nowMs = await book.now();
        if (isFirst) await book.prune(nowMs);
        isFirst = false;
        const nextMs = await startDue({ ...options, nowMs });
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
 * Starts the runs of each schedule's times that are due and not handled: the last one, or with `catchUp` all of that duration.
 * Returns when the next one is due.
 */
export async function startDue(
  options: SchedulerOptions & { readonly nowMs: number },
): Promise<number> {
  const { schedules, nowMs, onError } = options;
  let nextMs = Infinity;
  for (const schedule of schedules) {
    try {
      nextMs = Math.min(nextMs, await startDueOf(schedule, options));
    } catch (error) {
      // A failing schedule does not delay the others.
      onError(ensureError(error));
      nextMs = Math.min(nextMs, nowMs + AFTER_ERROR_MS);
    }
  }
  return nextMs;
}

async function startDueOf(
  schedule: Schedule,
  { book, start, nowMs, mayStart }: SchedulerOptions & { readonly nowMs: number },
): Promise<number> {
  const { doneMs, isPaused } = await book.look(schedule, nowMs);
  if (isPaused) return Infinity;
  const { due, nextMs } = dueTimes(schedule, { doneMs, nowMs });
  if (due.length > 0 && (await mayStart?.()) === false) return nowMs + HELD_MS;
  for (const dueMs of due) {
    // Marked after the start: if this process dies in between, another one finds the run by its id.
    await book.pass(schedule, dueMs, await start(schedule, runIdAt(schedule.name, dueMs), dueMs));
  }
  return nextMs;
}

/** Returns the id of the run for a time of a schedule. */
export function runIdAt(name: string, dueMs: number): string {
  return `${name}.${new Date(dueMs).toISOString().replace(".000Z", "Z")}`;
}
