import { readFileSync } from "node:fs";
import { REREAD_MS } from "./tls-material.ts";

/** A file with a token, such as a Pod's service account, that is read again every minute, as in client-go. */
export interface TokenFile {
  read(): string;
  /** Makes the next `read` read the file. */
  forget(): void;
}

export function createTokenFile(path: string): TokenFile {
  let token = "";
  let readAtMs = -Infinity;
  return {
    read() {
      if (performance.now() - readAtMs < REREAD_MS) return token;
      token = readFileSync(path, "utf8").trim();
      readAtMs = performance.now();
      return token;
    },
    forget() {
      readAtMs = -Infinity;
    },
  };
}
