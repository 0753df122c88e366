import { isEncoded, KonvergeError } from "@konverge/core";
import { assertJson } from "./json-value.ts";

/** Limit of an input, and of a signal's payload. */
const MAX_BYTES = 64 * 1_024;

/** Checks that a value is plain JSON within the limit. @throws KonvergeError `invalid_result`, `invalid_request` */
export function checkJson(value: unknown, what: string): void {
  // A caller may have encoded it.
  if (!isEncoded(value)) assertJson(value, what);
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? "");
  if (bytes <= MAX_BYTES) return;
  throw new KonvergeError(
    "invalid_request",
    `${what} has ${bytes} bytes, the limit is ${MAX_BYTES}; pass a reference instead of the data`,
  );
}
