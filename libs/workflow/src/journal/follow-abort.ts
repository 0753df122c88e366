/**
 * Returns a controller that is aborted with the first of these signals. It costs less than `AbortSignal.any`, but stays referenced
 * by them: they must not outlive the execution.
 */
export function followAbort(...signals: readonly AbortSignal[]): AbortController {
  const controller = new AbortController();
  for (const signal of signals) {
    const follow = () => controller.abort(signal.reason);
    if (signal.aborted) follow();
    else signal.addEventListener("abort", follow, { once: true });
  }
  return controller;
}
