/** Polls until `holds`, or rejects naming what never came true. */
export async function pollUntil(
  what: string,
  holds: () => boolean | Promise<boolean>,
  deadlineMs: number,
): Promise<void> {
  const endMs = performance.now() + deadlineMs;
  while (!(await holds())) {
    if (performance.now() > endMs)
      throw new Error(`never came true within ${deadlineMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
