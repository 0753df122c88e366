import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

/** The published packages contain JavaScript. */
const EXTENSION = extname(import.meta.url);

/** Path of a module of the demo, without its extension, as a file. */
export function demoFile(path: string): string {
  return fileURLToPath(new URL(`../${path}${EXTENSION}`, import.meta.url));
}

/** Main module of the command line. */
export const CLI_SCRIPT = fileURLToPath(
  new URL(`main${EXTENSION}`, import.meta.resolve("konverge")),
);

/** Main module of the demo, which has commands for the demo's own processes. */
export const DEMO_SCRIPT = demoFile("main");

export const DEMO_VERSION = (
  JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    readonly version: string;
  }
).version;
