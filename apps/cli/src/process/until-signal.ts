/**
 * Resolves at the first SIGINT or SIGTERM. The second one ends the process, or calls `hurry` if given; the third one then
 * ends the process.
 */
export function untilSignal(hurry?: () => void): Promise<"SIGINT" | "SIGTERM"> {
  return new Promise((resolve) => {
    let received = 0;
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.on(signal, () => {
        received += 1;
        if (received === 1) resolve(signal);
        else if (received === 2 && hurry !== undefined) hurry();
        else process.exit(signal === "SIGINT" ? 130 : 143);
      });
    }
  });
}
