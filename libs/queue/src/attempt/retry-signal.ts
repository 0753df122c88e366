/** Delay of retries that BullMQ starts by itself, in ms. */
const FALLBACK_DELAY_MS = 1_000;

/**
 * Thrown to make BullMQ retry a job; never visible to users. Redis stores its text, so it contains the outcome only (P12).
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

/** BullMQ's backoff strategy. Must not throw, or the job stays active until its lock expires. At least 1; 0 skips the delay. */
export function delayOfRetry(ours: boolean, error: Error | undefined): number {
  if (!ours || !(error instanceof RetrySignal)) return FALLBACK_DELAY_MS;
  return Math.max(1, Math.round(error.delayMs));
}
