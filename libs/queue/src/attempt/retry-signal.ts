/** Used when BullMQ retries a job for a reason of its own, in ms. */
const FALLBACK_DELAY_MS = 1_000;

/**
 * Thrown to BullMQ so that it retries a job; never seen by users. Its text is stored in Redis, so it says no more than
 * the outcome (P12).
 */
export class RetrySignal extends Error {
  override readonly name = "RetrySignal";
  readonly delayMs: number;

  constructor(outcome: string, delayMs: number) {
    super(outcome);
    this.delayMs = delayMs;
    this.stack = outcome;
  }
}

/** BullMQ's backoff strategy. It must not throw: the job would stay active until its lock ends. At least 1, since 0 skips the delay. */
export function delayOfRetry(ours: boolean, error: Error | undefined): number {
  if (!ours || !(error instanceof RetrySignal)) return FALLBACK_DELAY_MS;
  return Math.max(1, Math.round(error.delayMs));
}
