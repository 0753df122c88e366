const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/** Returns a signal that is aborted at the first SIGINT or SIGTERM. The second one ends the process. */
export function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(EXIT_CODES[name]);
      stop.abort(new Error(name));
    });
  }
  return stop.signal;
}

export async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
