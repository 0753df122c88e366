/** setTimeout fires immediately for longer delays. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Calls `fire` after `ms`, which may exceed the longest timer of Node. Returns a function that cancels it. */
export function startLongTimer(ms: number, fire: () => void): () => void {
  let leftMs = ms;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const step = () => {
    const partMs = Math.min(leftMs, MAX_TIMER_MS);
    leftMs -= partMs;
    timer = setTimeout(leftMs > 0 ? step : fire, partMs);
  };
  step();
  return () => clearTimeout(timer);
}
