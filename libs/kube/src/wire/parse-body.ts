import { load } from "js-yaml";
import type { JsonValue } from "@konverge/core";

/** Returns the content of a request: JSON, or the YAML of a server-side apply. Undefined if it is neither. */
export function parseBody(body: string): JsonValue | undefined {
  for (const parse of [JSON.parse, load]) {
    try {
      return parse(body) as JsonValue;
    } catch {
      // The server rejects what is neither.
    }
  }
  return undefined;
}
