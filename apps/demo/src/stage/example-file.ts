import { fileURLToPath } from "node:url";

/** Path of a file of apps/examples, which is named without its extension. */
export function exampleFile(name: string): string {
  return fileURLToPath(import.meta.resolve(`@konverge/examples/${name}`));
}
