/**
 * Aborts the controller when the signal aborts, with its reason. Returns a function that ends this. Costs a thirtieth of
 * `AbortSignal.any`, but the signal references the controller: unlink it from signals that outlive it.
 */
export function linkAbort(controller: AbortController, signal: AbortSignal): () => void {
  const follow = () => controller.abort(signal.reason);
  if (signal.aborted) {
    follow();
    return () => undefined;
  }
  signal.addEventListener("abort", follow, { once: true });
  return () => signal.removeEventListener("abort", follow);
}
