export type EndSignal = "SIGINT" | "SIGTERM";

/** The exit code of a process that a signal ended. */
export function exitCodeOf(signal: EndSignal): number {
  return signal === "SIGINT" ? 130 : 143;
}

/**
 * Resolves at the first SIGINT or SIGTERM. The second one ends the process, or calls `hurry` if given; the third one then
 * ends the process.
 */
export function untilSignal(hurry?: (signal: EndSignal) => void): Promise<EndSignal> {
  return new Promise((resolve) => {
    let received = 0;
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.on(signal, () => {
        received += 1;
        if (received === 1) resolve(signal);
        else if (received === 2 && hurry !== undefined) hurry(signal);
        else process.exit(exitCodeOf(signal));
      });
    }
  });
}
