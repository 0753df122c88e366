import { KonvergeError, sleepMs } from "@konverge/core";

/** Calls `check` until it returns true. @throws KonvergeError `demo_failed` after `deadlineMs`, with `what` */
export async function pollUntil(
  what: string,
  check: () => Promise<boolean>,
  {
    deadlineMs = 120_000,
    everyMs = 100,
    signal,
  }: {
    readonly deadlineMs?: number;
    readonly everyMs?: number;
    readonly signal?: AbortSignal;
  } = {},
): Promise<void> {
  const endMs = performance.now() + deadlineMs;
  while (!(await check())) {
    if (performance.now() >= endMs) {
      throw new KonvergeError("demo_failed", `not within ${deadlineMs} ms: ${what}`);
    }
    await sleepMs(everyMs, signal);
  }
}
