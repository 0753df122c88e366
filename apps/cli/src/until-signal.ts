/** Resolves at the first SIGINT or SIGTERM. A second one ends the process at once, as people expect. */
export function untilSignal(): Promise<"SIGINT" | "SIGTERM"> {
  return new Promise((resolve) => {
    let told = false;
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.on(signal, () => {
        if (told) process.exit(signal === "SIGINT" ? 130 : 143);
        told = true;
        resolve(signal);
      });
    }
  });
}
