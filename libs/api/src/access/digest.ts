import { createHash } from "node:crypto";

/** SHA-256. */
export function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
