/** The statuses of a workflow run. */
export const RUN_STATUSES = [
  "queued",
  "running",
  "waiting",
  "blocked",
  "pausing",
  "paused",
  "compensating",
  "done",
  "failed",
  "cancelled",
] as const;

export type RunStatus = (typeof RUN_STATUSES)[number];
