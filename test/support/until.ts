import { isLateAnswer } from "@konverge/redis";
import { isLongRun } from "./test-run.ts";

/** The default deadline in ms: enough for a busy machine, and less than a test's timeout, so that the error names the wait. */
const DEADLINE_MS = isLongRun ? 1_200_000 : 300_000;
const EVERY_MS = 10;

/**
 * Polls until `probe` returns a value other than `undefined` and `false`, and returns it. A probe that Redis does not answer
 * in time is repeated: calls have a deadline for users, which a busy machine can exceed.
 * @param what completes "never happened: "
 * @throws Error after `deadlineMs`
 */
export async function until<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  deadlineMs = DEADLINE_MS,
): Promise<T> {
  const endMs = performance.now() + deadlineMs;
  for (;;) {
    const found = await unlessRedisIsLate(async () => await probe());
    if (found !== undefined && found !== false) return found;
    if (performance.now() > endMs)
      throw new Error(`never happened within ${deadlineMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}

/** Returns undefined if Redis did not answer in time. */
export async function unlessRedisIsLate<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (isLateAnswer(error)) return undefined;
    throw error;
  }
}
