/** Nobody waits for an answer, and the demo's processes keep the machine busy. */
const DEMO_DEADLINE_MS = 30_000;

/** Returns the Redis of the demo's own reads. */
export function redisOfDemo(url: string): { readonly url: string; readonly deadlineMs: number } {
  return { url, deadlineMs: DEMO_DEADLINE_MS };
}
