import type { Schedule } from "./timers.ts";

export interface ProberOptions {
  readonly probe: ((signal: AbortSignal) => Promise<unknown>) | undefined;
  readonly schedule: Schedule;
  readonly random: () => number;
  readonly isDue: () => boolean;
  /** Time until a probe can be granted. */
  readonly waitMs: () => number;
  /** Range of the random delay that spreads the requests of processes. */
  readonly spreadMs: () => number;
}

export interface Prober {
  /** Sends probes while they are due. */
  arm(): void;
  /** Cancels the next probe. */
  cancel(): void;
}

/** Longest probe: a server that needs more time has not recovered. */
export const PROBE_DEADLINE_MS = 5_000;
const PAUSE_MS = 1_000;

/** Sends probes without waiting for calls: while the breaker is open, workers take no jobs. */
export function createProber({
  probe,
  schedule,
  random,
  isDue,
  waitMs,
  spreadMs,
}: ProberOptions): Prober {
  let cancelNext: (() => void) | undefined;
  let running: AbortController | undefined;

  const cancel = () => {
    cancelNext?.();
    cancelNext = undefined;
  };
  const arm = () => {
    if (probe === undefined || cancelNext !== undefined || running !== undefined) return;
    cancelNext = schedule(Math.max(1, waitMs()) + random() * spreadMs(), () => {
      cancelNext = undefined;
      if (isDue()) void run(probe);
    });
  };
  const run = async (send: (signal: AbortSignal) => Promise<unknown>) => {
    if (waitMs() > 0) return arm();
    running = new AbortController();
    const cancelDeadline = schedule(PROBE_DEADLINE_MS, () =>
      running?.abort(new Error("the probe took too long")),
    );
    // The gate has recorded the result; a deferral means that another probe is in flight.
    await send(running.signal).catch(() => undefined);
    cancelDeadline();
    running = undefined;
    if (!isDue()) return;
    cancelNext = schedule(PAUSE_MS * (0.75 + 0.5 * random()), () => {
      cancelNext = undefined;
      if (isDue()) arm();
    });
  };
  return { arm, cancel };
}
