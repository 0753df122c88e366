export interface ProberOptions {
  readonly probe: ((signal: AbortSignal) => Promise<unknown>) | undefined;
  readonly schedule: (ms: number, work: () => void) => () => void;
  readonly random: () => number;
  readonly isDue: () => boolean;
  /** Until a probe can be granted, as far as is known. */
  readonly waitMs: () => number;
  /** Processes draw their moment from this, so that not all ask at once. */
  readonly spreadMs: () => number;
}

export interface Prober {
  /** The breaker is not closed: probe when the time has come, until stopped. */
  arm(): void;
  stop(): void;
}

/** The breaker's rule: a server that needs longer for one read is not back. */
export const PROBE_DEADLINE_MS = 5_000;
const PAUSE_MS = 1_000;

/** Sends the probe when nobody else calls: while the breaker is open, workers take no work. */
export function createProber({
  probe,
  schedule,
  random,
  isDue,
  waitMs,
  spreadMs,
}: ProberOptions): Prober {
  let cancel: (() => void) | undefined;
  let running: AbortController | undefined;

  const stop = () => {
    cancel?.();
    cancel = undefined;
  };
  const arm = () => {
    if (probe === undefined || cancel !== undefined || running !== undefined) return;
    cancel = schedule(Math.max(1, waitMs()) + random() * spreadMs(), () => {
      cancel = undefined;
      if (isDue()) void run(probe);
    });
  };
  const run = async (send: (signal: AbortSignal) => Promise<unknown>) => {
    if (waitMs() > 0) return arm();
    running = new AbortController();
    const cancelDeadline = schedule(PROBE_DEADLINE_MS, () =>
      running?.abort(new Error("the probe took too long")),
    );
    // How the probe ended the gate has seen; that it was deferred means that another one is under way.
    await send(running.signal).catch(() => undefined);
    cancelDeadline();
    running = undefined;
    if (!isDue()) return;
    cancel = schedule(PAUSE_MS * (0.75 + 0.5 * random()), () => {
      cancel = undefined;
      if (isDue()) arm();
    });
  };
  return { arm, stop };
}
