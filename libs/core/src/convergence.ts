/** The causes of the time from a change to success. */
export const CONVERGENCE_CAUSES = [
  /** The wait of the first attempt in the queue. */
  "queue",
  /** Waits because the controller, the namespace or the key was paused. */
  "pause",
  /** Waits because the API server could not be used. */
  "outage",
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

/** A stretch of time, in epoch ms. */
export interface TimeSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

/** An attempt that has succeeded. Times in ms. */
interface Succeeded {
  /** Consecutive failures and conflicts before it. */
  readonly failures: number;
  readonly conflicts: number;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly waits: {
    /** From the oldest request that it ends, also if earlier attempts have begun for it. */
    readonly queueMs: number;
    readonly rateLimitMs: number;
    readonly laneMs: number;
    readonly conflictMs: number;
  };
  /** When the key was paused, and when the API server could not be used; in any order. */
  readonly pauses: readonly TimeSpan[];
  readonly outages: readonly TimeSpan[];
}

/**
 * Divides the time from the oldest request to the end of the attempt, in ms. The sum of the parts is that time: calls in parallel
 * may wait for longer than the attempt takes, so a wait counts at most for what is left. A pause during an outage is a pause.
 */
export function divideConvergence({
  failures,
  conflicts,
  startedAtMs,
  durationMs,
  waits,
  pauses,
  outages,
}: Succeeded): Record<ConvergenceCause, number> {
  const before = failures > 0 ? "retry" : conflicts > 0 ? "contention" : "queue";
  const parts: Record<ConvergenceCause, number> = {
    queue: 0,
    pause: 0,
    outage: 0,
    retry: 0,
    contention: 0,
    token: 0,
    lane: 0,
    handler: 0,
  };
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
  const wait = { fromMs: startedAtMs - waits.queueMs, toMs: startedAtMs };
  parts.pause = coveredMs(wait, pauses);
  parts.outage = coveredMs(wait, [...pauses, ...outages]) - parts.pause;
  parts[before] += waits.queueMs - parts.pause - parts.outage;
  return parts;
}

/** Returns how much of the time the spans cover together. */
function coveredMs({ fromMs, toMs }: TimeSpan, spans: readonly TimeSpan[]): number {
  let covered = 0;
  let at = fromMs;
  for (const span of spans.toSorted((one, other) => one.fromMs - other.fromMs)) {
    const from = Math.max(at, span.fromMs);
    const to = Math.min(toMs, span.toMs);
    if (to <= from) continue;
    covered += to - from;
    at = to;
  }
  return covered;
}
