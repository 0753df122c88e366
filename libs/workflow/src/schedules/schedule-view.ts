import type { ScheduleOverlap } from "@konverge/core";
import type { ScheduleRule } from "./schedule-times.ts";

/** The author, reason and time of a pause. */
export interface SchedulePause {
  readonly by?: string;
  readonly reason?: string;
  readonly atMs: number;
}

/** The part of a schedule that workers store, so that other processes can start its runs. */
export interface ScheduleSpec {
  readonly workflow: string;
  readonly version: number;
  readonly rule: ScheduleRule;
  readonly input?: unknown;
  readonly overlap: ScheduleOverlap;
  readonly catchUpMs?: number;
  readonly jitterMs?: number;
}

/** The state of a schedule. Times are epoch ms by Redis's clock. */
export interface ScheduleView extends Omit<ScheduleSpec, "version" | "rule"> {
  readonly name: string;
  /** When it is due: `cron 0 3 * * * UTC` or `every 3600000 ms`. */
  readonly times: string;
  /** Last check by a process. */
  readonly seenMs: number;
  /** False once no process checks it any more, so it starts no runs. */
  readonly isLive: boolean;
  readonly nextMs: number;
  /** Id of the run of the last time. */
  readonly run?: string;
  readonly paused?: SchedulePause;
}
