/** The default deadline in ms: enough for a busy machine, and less than a test's timeout, so that the error names the wait. */
const DEADLINE_MS = 90_000;
const EVERY_MS = 10;

/**
 * Polls until `probe` returns a value other than `undefined` and `false`, and returns it.
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
    const found = await probe();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > endMs)
      throw new Error(`never happened within ${deadlineMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}
