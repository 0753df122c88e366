import type { PayloadCodec } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";
import { openSchedules, startDueRun, type ScheduleStarts } from "../schedules/open-schedules.ts";
import { codedScheduleBook } from "../schedules/coded-schedule-book.ts";
import type { Schedule } from "../schedules/define-schedule.ts";
import type { ScheduleBook } from "../schedules/schedule-book.ts";
import type { Schedules } from "../schedules/schedules.ts";
import { startDue } from "../schedules/start-scheduler.ts";
import { createMemoryScheduleBook } from "./memory-schedule-book.ts";

export interface TestSchedulesOptions {
  readonly starts: ScheduleStarts;
  readonly now: () => number;
  readonly codec: PayloadCodec | undefined;
}

/** The schedules of a test, started by the rules of production. */
export class TestSchedules {
  /** As an operator uses them. */
  readonly control: Schedules;
  readonly #starts: ScheduleStarts;
  readonly #now: () => number;
  readonly #book: ScheduleBook;
  readonly #schedules = new Map<string, Schedule>();
  /** Ids by schedule, in the order of their starts. */
  readonly #runs = new Map<string, Set<string>>();
  #dueAtMs = Infinity;

  constructor({ starts, now, codec }: TestSchedulesOptions) {
    this.#starts = starts;
    this.#now = now;
    this.#book = codedScheduleBook(createMemoryScheduleBook(now), codec);
    this.control = openSchedules(this.#book, starts);
  }

  /** @throws Error if a schedule has this name */
  add(schedule: Schedule): void {
    const { name } = schedule;
    if (this.#schedules.has(name)) throw new Error(`schedule "${name}" was passed twice`);
    this.#schedules.set(name, schedule);
    this.#runs.set(name, new Set());
  }

  /** Time of the next start, epoch ms. */
  get dueAtMs(): number {
    return this.#dueAtMs;
  }

  /** Starts what is due, as a worker does. */
  async startDue(): Promise<void> {
    const nowMs = this.#now();
    this.#dueAtMs = nowMs;
    // A round starts at most 100 times.
    while (this.#dueAtMs <= nowMs) {
      this.#dueAtMs = await startDue({
        schedules: [...this.#schedules.values()],
        book: this.#book,
        nowMs,
        start: async (schedule, id, scheduledAtMs) => {
          const started = await startDueRun(this.#starts, schedule, { id, scheduledAtMs });
          if (started !== undefined) this.note(schedule.name, started);
          return started;
        },
        onError: (error) => {
          throw error;
        },
      });
    }
  }

  note(name: string, run: string): void {
    this.#runs.get(name)?.add(run);
  }

  runsOf({ name, workflow }: Schedule): readonly RunRef[] {
    const ids = [...(this.#runs.get(name) ?? [])];
    return ids.map((id) => ({ workflow: workflow.name, id }));
  }
}

/** @throws Error if there is no such run */
export function runAt(
  runs: readonly RunRef[],
  index: number,
  { name }: Pick<Schedule, "name">,
): RunRef {
  const found = runs.at(index);
  if (found !== undefined) return found;
  throw new Error(
    `schedule "${name}" has started ${runs.length} runs; run ${index} is not among them`,
  );
}
