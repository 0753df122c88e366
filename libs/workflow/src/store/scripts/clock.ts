/** How long after a wake-up was due a sweep looks for it, in ms. */
export const GRACE_MS = 10_000;
/** How long a run may be held before it is requested again, in ms; a follow-up of an execution that continues is harmless. */
export const HELD_CHECK_MS = 60_000;
