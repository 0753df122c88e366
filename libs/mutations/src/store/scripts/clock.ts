/** How long after its submission a sweep requests an object that no worker has taken, in ms. */
export const GRACE_MS = 10_000;
/** How long after it was taken a sweep requests an object again, in ms. A follow-up attempt that finds nothing is harmless. */
export const TAKEN_CHECK_MS = 60_000;
