import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { KonvergeError } from "@konverge/core";

/** Path of a file of apps/examples. @throws KonvergeError `invalid_config` where there is no clone */
export function exampleFile(name: string): string {
  const path = fileURLToPath(new URL(`../../../examples/src/${name}`, import.meta.url));
  if (existsSync(path)) return path;
  throw new KonvergeError(
    "invalid_config",
    "the demo plays the examples of the repository: run `npm run demo` in a clone; `konverge init` makes a project of your own",
  );
}
