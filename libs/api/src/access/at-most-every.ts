/** Shares the calls of `read` within an interval, and their result. A failure is shared as well. */
export function atMostEvery<T>(intervalMs: number, read: () => Promise<T>): () => Promise<T> {
  let shared: Promise<T> | undefined;
  let sharedUntilMs = 0;
  return () => {
    if (shared === undefined || performance.now() > sharedUntilMs) {
      shared = read();
      sharedUntilMs = performance.now() + intervalMs;
    }
    return shared;
  };
}
