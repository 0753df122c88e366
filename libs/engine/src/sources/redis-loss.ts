import { ensureError, sleepMs } from "@konverge/core";

/** Resolves when the incarnation of Redis differs from `known`: Redis may have lost requests. */
export async function untilLost(
  known: string,
  {
    incarnation,
    checkMs = 5_000,
  }: { readonly incarnation: () => Promise<string>; readonly checkMs?: number | undefined },
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await sleepMs(checkMs, signal);
    // A loss of data while Redis is unavailable is detected when it is available again.
    if ((await incarnation().catch(() => known)) !== known) return;
  }
}

/** Repeats a call until it succeeds. */
export async function insist<T>(
  call: () => Promise<T>,
  {
    signal,
    onError,
    retryMs,
  }: {
    readonly signal: AbortSignal;
    readonly onError: (error: Error) => void;
    readonly retryMs: number;
  },
): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await call();
    } catch (error) {
      onError(ensureError(error));
      await sleepMs(retryMs, signal);
    }
  }
}
