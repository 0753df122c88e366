/**
 * Resolves at the first SIGINT or SIGTERM. A second one ends the process at once, as people expect, or where there is a
 * `hurry` calls that, and the third one ends the process.
 */
export function untilSignal(hurry?: () => void): Promise<"SIGINT" | "SIGTERM"> {
  return new Promise((resolve) => {
    let told = 0;
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.on(signal, () => {
        told += 1;
        if (told === 1) resolve(signal);
        else if (told === 2 && hurry !== undefined) hurry();
        else process.exit(signal === "SIGINT" ? 130 : 143);
      });
    }
  });
}
