/**
 * Blocks the event loop. Computes until it has used a tenth of the time as CPU time, as a blocked process does and a frozen
 * one does not, and then sleeps: other tests need the processor.
 */
export function blockEventLoop(ms: number): void {
  const endMs = performance.now() + ms;
  const before = process.cpuUsage();
  for (;;) {
    const { user } = process.cpuUsage(before);
    if (user / 1_000 > ms / 10 || performance.now() > endMs) break;
  }
  const restMs = endMs - performance.now();
  if (restMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, restMs);
}
