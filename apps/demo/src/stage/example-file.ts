import { fileURLToPath } from "node:url";

/** Path of a file of apps/examples. */
export function exampleFile(name: string): string {
  return fileURLToPath(new URL(`../../../examples/src/${name}`, import.meta.url));
}
