import { KonvergeError } from "@konverge/core";

/** Key segments are percent-encoded, so they contain no `@`. */
const SEPARATOR = "@";

export function formatRequestId(key: string, number: number): string {
  return `${key}${SEPARATOR}${number}`;
}

/** @throws KonvergeError `not_found` for a text that is not a request id. */
export function parseRequestId(id: string): { readonly key: string; readonly number: number } {
  const at = id.lastIndexOf(SEPARATOR);
  const digits = id.slice(at + 1);
  if (at < 1 || !/^[1-9]\d{0,14}$/.test(digits)) {
    throw new KonvergeError("not_found", `"${id}" is not a request id`);
  }
  return { key: id.slice(0, at), number: Number(digits) };
}
