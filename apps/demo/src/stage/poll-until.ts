import { KonvergeError, sleepMs } from "@konverge/core";

/** Asks `check` until it says yes. @throws KonvergeError `demo_failed` naming what was waited for. */
export async function pollUntil(
  what: string,
  check: () => Promise<boolean>,
  {
    deadlineMs = 30_000,
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
      throw new KonvergeError("demo_failed", `waited ${deadlineMs} ms in vain until ${what}`);
    }
    await sleepMs(everyMs, signal);
  }
}
