import { sleepMs } from "@konverge/core";
import type { RunRef, Workflows } from "@konverge/workflow";

const POLL_MS = 100;

/**
 * Returns when the run has ended, when its `<status>/<number of steps>` differs from `lastState`, when the wait times out,
 * or when `signal` aborts. Each poll reads two fields.
 */
export async function waitForRun(
  runs: Workflows,
  ref: RunRef,
  {
    waitMs,
    lastState,
    signal,
  }: {
    readonly waitMs: number;
    readonly lastState: string | undefined;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const endMs = performance.now() + waitMs;
  for (;;) {
    const leftMs = endMs - performance.now();
    if (leftMs <= 0 || signal.aborted) return;
    const now = await runs.peek(ref);
    if (now === undefined || now.hasEnded) return;
    if (lastState !== undefined && lastState !== `${now.status}/${now.steps}`) return;
    await sleepMs(Math.min(POLL_MS, leftMs));
  }
}
