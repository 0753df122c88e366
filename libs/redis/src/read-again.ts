import { readFileSync } from "node:fs";
import { ensureError, KonvergeError } from "@konverge/core";

/**
 * Returns a function that reads a text file anew with each call, for credentials that are replaced while the process runs. A file
 * that cannot be read at this moment has its last content.
 * @throws KonvergeError `invalid_config` if it cannot be read the first time
 */
export function readAgain(path: string, parameter: string): () => string {
  let last: string;
  try {
    last = read(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new KonvergeError(
      "invalid_config",
      `invalid Redis URL: the file of the parameter ${parameter} cannot be read: ${path} (${code ?? ensureError(error).message})`,
    );
  }
  return () => {
    try {
      last = read(path);
    } catch {
      // While a Secret is replaced, the file may be missing for a moment.
    }
    return last;
  };
}

/** Without the line break at the end of a password. */
function read(path: string): string {
  return readFileSync(path, "utf8").replace(/\r?\n$/, "");
}
