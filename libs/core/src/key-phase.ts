/** The phases of a key in the queue. */
export const KEY_PHASES = [
  "idle",
  "waiting",
  "running",
  "backoff",
  "deadLettered",
  "paused",
] as const;

export type KeyPhase = (typeof KEY_PHASES)[number];
