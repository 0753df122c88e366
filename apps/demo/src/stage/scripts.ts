import { fileURLToPath } from "node:url";

/** Main module of the command line. */
export const CLI_SCRIPT = fileURLToPath(new URL("../../../cli/src/main.ts", import.meta.url));

/** Main module of the demo, which has commands for the demo's own processes. */
export const DEMO_SCRIPT = fileURLToPath(new URL("../main.ts", import.meta.url));

/** Path of a file of the lazy act. */
export function lazyFile(name: string): string {
  return fileURLToPath(new URL(`../lazy/${name}`, import.meta.url));
}

/** The demo is never released. */
export const DEMO_VERSION = "0.0.0";
