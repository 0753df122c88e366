import { KonvergeError } from "@konverge/core";
import type { Schema } from "./define-workflow.ts";
import { assertJson } from "./json-value.ts";
import { schemaRefusal } from "./schema-refusal.ts";

/**
 * Parses a value that becomes part of a run. The result is recorded, so it must be JSON too.
 * @param what names the value in errors
 * @throws KonvergeError `invalid_request`, `invalid_result`
 */
export function parseWith<T>(schema: Schema<T>, value: unknown, what: string): T {
  let parsed: T;
  try {
    parsed = schema.parse(value);
  } catch (cause) {
    const detail = `${what} does not fit its schema: ${schemaRefusal(cause)}`;
    throw new KonvergeError("invalid_request", detail, { cause });
  }
  assertJson(parsed, `${what}, as its schema parses it,`);
  return parsed;
}
