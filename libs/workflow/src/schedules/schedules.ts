import type { ScheduleOverlap } from "@konverge/core";
import type { SchedulePause, ScheduleView } from "./schedule-view.ts";

/** A schedule and its next times, epoch ms; none while it is paused or no process checks it. */
export interface ScheduleDetail extends ScheduleView {
  readonly nextTimesMs: readonly number[];
}

export interface TriggerOptions {
  /** Id of the run. Default: the name of the schedule and a UUID. */
  readonly id?: string;
  /** Default: that of the schedule. */
  readonly overlap?: ScheduleOverlap;
  /** Author of the run. */
  readonly by?: string;
}

export interface BackfillOptions {
  /** First and last moment, epoch ms. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Default `buffer-all`: the runs start one after another. */
  readonly overlap?: ScheduleOverlap;
  /** Author of the runs. */
  readonly by?: string;
  /** Returns the times, and starts nothing. Default false. */
  readonly dryRun?: boolean;
}

/** The run of a trigger, or the run that is active instead. */
export interface TriggeredRun {
  readonly workflow: string;
  readonly id: string;
  /** False for an existing run. */
  readonly created: boolean;
  /** Creation of an existing run with this id, epoch ms by Redis's clock. */
  readonly createdAtMs?: number;
}

/** A time of a backfill. */
export interface BackfilledTime {
  readonly atMs: number;
  /** The run of the time, or the run that is active instead. */
  readonly run: string;
  /** False if the time had a run, or was skipped because another one is active, and in a dry run. */
  readonly created: boolean;
}

/** Reads and controls the schedules that workers have announced. Names that are unknown are `not_found`. */
export interface Schedules {
  /** Returns the schedules that a process has checked within a week. */
  list(): Promise<readonly ScheduleView[]>;
  get(name: string): Promise<ScheduleDetail>;
  /** Starts no runs until the schedule is resumed. The times in between are skipped. */
  pause(name: string, request?: Pick<SchedulePause, "by" | "reason">): Promise<void>;
  /** Continues with the next time. */
  resume(name: string): Promise<void>;
  /** Starts a run now, also while the schedule is paused. Its scheduled time is now. @throws KonvergeError `queue_full` */
  trigger(name: string, options?: TriggerOptions): Promise<TriggeredRun>;
  /**
   * Starts the runs of the past times in a range that have none, oldest first. A run that has expired counts as none.
   * @throws KonvergeError `invalid_request` for more than 1,000 times, `queue_full`
   */
  backfill(
    name: string,
    options: BackfillOptions,
  ): Promise<{ readonly workflow: string; readonly times: readonly BackfilledTime[] }>;
}
