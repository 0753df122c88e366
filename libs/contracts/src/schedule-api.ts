import { SCHEDULE_OVERLAPS } from "@konverge/core";
import { z } from "zod";
import { oneOf, text } from "./query-fields.ts";
import { operatorActionSchema } from "./queue-api.ts";

const BAD_TIME = "must be a time in ISO 8601, such as 2026-11-21T02:00:00Z";
const overlap = z.enum(SCHEDULE_OVERLAPS, oneOf(SCHEDULE_OVERLAPS));
const time = z.iso.datetime({ offset: true, error: BAD_TIME });

/** Query of `GET /v1/schedules`. */
export const scheduleQuerySchema = z.strictObject({ cluster: text.default("default") });

const scheduleFields = {
  name: z.string(),
  workflow: z.string(),
  cluster: z.string(),
  /** The schedule: `cron 0 3 * * * UTC` or `every 3600000 ms`. */
  schedule: z.string(),
  overlap: z.enum(SCHEDULE_OVERLAPS),
  /** False if no worker has the schedule; it then starts no runs. */
  active: z.boolean(),
  /** Author, reason and begin of a pause. */
  paused: z
    .object({ by: z.string().optional(), reason: z.string().optional(), since: z.string() })
    .optional(),
  seenAt: z.string(),
  /** Set while the schedule is active and not paused. A jitter may delay the start. */
  nextAt: z.string().optional(),
  /** ID of the last run. */
  run: z.string().optional(),
};

/** Response of the same: the schedules that workers have announced. */
export const scheduleListSchema = z.object({ items: z.array(z.object(scheduleFields)) });

/** Response of `GET /v1/schedules/{cluster}/{name}`, and of a pause or resume. */
export const scheduleSchema = z.object({
  ...scheduleFields,
  /** The input of each run. */
  input: z.unknown().optional(),
  /** How long missed times are caught up. Missing: one run, for the last missed time. */
  catchUpMs: z.number().optional(),
  /** Longest delay of a start. */
  jitterMs: z.number().optional(),
  /** The next five times; empty while the schedule is paused or not active. */
  nextTimes: z.array(z.string()),
});

/** Body of `POST /v1/schedules/{cluster}/{name}/trigger`. */
export const triggerScheduleSchema = operatorActionSchema.extend({
  /** Default: that of the schedule. */
  overlap: overlap.optional(),
});

/** Body of `POST /v1/schedules/{cluster}/{name}/backfill`. */
export const backfillScheduleSchema = operatorActionSchema.extend({
  /** First moment of the range. */
  from: time,
  /** Last moment of the range; in the past. */
  to: time,
  overlap: overlap.default("buffer-all"),
  /** Returns the times without starting runs. */
  dryRun: z.boolean("must be true or false").default(false),
});

/** Response of the same, oldest time first. */
export const backfillResponseSchema = z.object({
  items: z.array(
    z.object({
      at: z.string(),
      /** ID of the run of the time, or of the run that is active instead. */
      run: z.string(),
      /** False if the time had a run, or was skipped because another run is active, and in a dry run. */
      created: z.boolean(),
    }),
  ),
});

export type ScheduleList = z.infer<typeof scheduleListSchema>;
export type ScheduleDetail = z.infer<typeof scheduleSchema>;
export type TriggerSchedule = z.output<typeof triggerScheduleSchema>;
export type BackfillSchedule = z.output<typeof backfillScheduleSchema>;
export type BackfillResponse = z.infer<typeof backfillResponseSchema>;
