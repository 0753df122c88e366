/** The causes of the time from a change to success. */
export const CONVERGENCE_CAUSES = [
  /** The wait of the first attempt in the queue. */
  "queue",
  /** Failed attempts, and the backoffs between them. */
  "retry",
  /** Attempts that ended with a conflict, and the tries of writes after conflicts. */
  "contention",
  /** Waits for tokens of the rate limit. */
  "token",
  /** Waits in object lanes. */
  "lane",
  /** The rest: the handler and its API calls. */
  "handler",
] as const;

export type ConvergenceCause = (typeof CONVERGENCE_CAUSES)[number];

/** An attempt that has succeeded. Times in ms. */
interface Succeeded {
  /** Consecutive failures and conflicts before it. */
  readonly failures: number;
  readonly conflicts: number;
  readonly durationMs: number;
  readonly waits: {
    /** From the oldest request that it ends, also if earlier attempts have begun for it. */
    readonly queueMs: number;
    readonly rateLimitMs: number;
    readonly laneMs: number;
    readonly conflictMs: number;
  };
}

/**
 * Divides the time from the oldest request to the end of the attempt, in ms. The sum of the parts is that time: calls in parallel
 * may wait for longer than the attempt takes, so a wait counts at most for what is left.
 */
export function divideConvergence({
  failures,
  conflicts,
  durationMs,
  waits,
}: Succeeded): Record<ConvergenceCause, number> {
  const before = failures > 0 ? "retry" : conflicts > 0 ? "contention" : "queue";
  const parts = { queue: 0, retry: 0, contention: 0, token: 0, lane: 0, handler: 0 };
  let leftMs = durationMs;
  const take = (ms: number): number => {
    const taken = Math.min(ms, leftMs);
    leftMs -= taken;
    return taken;
  };
  parts.token = take(waits.rateLimitMs);
  parts.lane = take(waits.laneMs);
  parts.contention = take(waits.conflictMs);
  parts.handler = leftMs;
  parts[before] += waits.queueMs;
  return parts;
}
