/** How many of the last log lines of a run are kept. */
export const MOST_LINES = 200;
/** How long they are kept after the last one, in ms. */
export const LOGS_KEPT_MS = 604_800_000;
