/** The overlap policies of a schedule, with the names that Temporal uses. */
export const SCHEDULE_OVERLAPS = [
  "skip",
  "buffer-one",
  "buffer-all",
  "cancel-other",
  "terminate-other",
  "allow-all",
] as const;

/**
 * The action of a schedule at a time at which an earlier run is active: `skip` starts no run; `buffer-one` starts one after the
 * active run, and skips further times; `buffer-all` starts a run for each time, one after another; `cancel-other` cancels the
 * active run and starts after its end; `terminate-other` ends it without undo and starts at once; `allow-all` starts at once.
 */
export type ScheduleOverlap = (typeof SCHEDULE_OVERLAPS)[number];
