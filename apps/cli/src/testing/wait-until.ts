import { KonvergeError, sleepMs } from "@konverge/core";

const ASK_EVERY_MS = 10;

/**
 * Polls until the result is neither undefined nor false. `describe` adds the last state to the error.
 * @throws KonvergeError `wait_timeout`
 */
export async function waitUntil<T>(
  what: string,
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  {
    deadlineMs,
    describe,
  }: { readonly deadlineMs: number; readonly describe?: () => Promise<string> },
): Promise<T> {
  const endMs = performance.now() + deadlineMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() >= endMs) {
      const known = describe === undefined ? "" : `: ${await describe()}`;
      throw new KonvergeError("wait_timeout", `waited ${deadlineMs} ms for ${what}${known}`);
    }
    await sleepMs(ASK_EVERY_MS);
  }
}
